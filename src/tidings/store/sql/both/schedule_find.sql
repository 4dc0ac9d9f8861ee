-- One schedule.
select id, tenant, name, state, rule, timezone, creates, body, catch_up, catch_up_window, overlap, tags, held_at, start_at, end_at, most, fired, next_at, last_at,
  last_created, problem, version, created_at, changed_at
from schedules where id = :id and tenant = :tenant
