-- One holder at a time per order key, in one order everywhere, so that nobody waits in a circle.
-- Own file: advisory locks; SQLite has a single writer.
select count(pg_advisory_xact_lock(h.h)) as held from (
  select distinct hashtextextended(k.queue || chr(1) || k.ordering_key, 7) as h
  from unnest(:queues::text[], :ordering_keys::text[]) k(queue, ordering_key) order by 1) h
