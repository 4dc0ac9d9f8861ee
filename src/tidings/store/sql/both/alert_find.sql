-- One alert.
select id, tenant, rule, subject, severity, state, value, problem, first_at, last_at, raised_at, acknowledged_at, acknowledged_by,
  resolved_at, notify_error
from alerts where id = :id and tenant = :tenant and state <> 'pending'
