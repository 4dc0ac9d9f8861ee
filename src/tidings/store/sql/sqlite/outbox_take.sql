-- Claim these :n events; nothing if another process sent one of them. Own file: a list comes as JSON.
delete from outbox where id in (select value from json_each(:ids))
  and (select count(*) from outbox o where o.id in (select value from json_each(:ids))) = :n
returning id
