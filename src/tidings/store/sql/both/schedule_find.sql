-- One schedule.
select id, tenant, name, state, rule, timezone, makes, body, catch_up, catch_up_window, start_at, end_at, most, fired, next_at, last_at,
  last_made, problem, version, created_at, changed_at
from schedules where id = :id and tenant = :tenant
