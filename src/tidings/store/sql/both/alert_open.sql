-- Alerts that are not over, the pending ones among them.
select id, tenant, rule, subject, severity, state, value, problem, first_at, last_at, raised_at, acknowledged_at, acknowledged_by
from alerts where resolved_at is null order by rule, subject limit :limit
