-- Alerts that were raised, newest first, from before a place; those that are over only where wanted.
select id, tenant, rule, subject, severity, state, value, problem, first_at, last_at, raised_at, acknowledged_at, acknowledged_by,
  resolved_at, notify_error
from alerts where tenant = :tenant and id < :before and (state = 'raised' or (:past and state = 'resolved')) order by id desc limit :limit
