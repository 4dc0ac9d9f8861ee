-- Schedules that match a filter before a position, newest first; a bounded number of rows is scanned.
select id, tenant, name, state, rule, timezone, creates, body, catch_up, catch_up_window, overlap, tags, held_at, start_at, end_at, most,
  fired, next_at, last_at, last_created, problem, version, created_at, changed_at
from (select * from schedules where tenant = :tenant and id < :before order by id desc limit :window) s
where (cast(:state as text) is null or state = :state) and (cast(:channel as text) is null or channel = :channel)
  and (cast(:to as text) is null or recipient = :to) and (cast(:timezone as text) is null or timezone = :timezone)
  and (cast(:title as text) is null or replace(lower(name), lower(:title), '') <> lower(name))
  and (cast(:tag as text) is null or replace(tags, '|' || :tag || '|', '') <> tags)
order by id desc limit :limit
