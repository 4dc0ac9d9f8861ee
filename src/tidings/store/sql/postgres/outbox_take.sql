-- Claim these :n events; nothing if another node is sending one of them. Own file: row locks.
with held as materialized (
  select o.id from json_array_elements_text(:ids::json) g(id) join outbox o on o.id = g.id::bigint
  order by o.id for update of o skip locked)
delete from outbox where id in (select id from held) and (select count(*) from held) = :n::bigint
returning id
