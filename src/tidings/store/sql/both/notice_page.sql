-- Notices, newest first, from before a place.
select id, tenant, key, reason, at, last_at, times, sent_at, problem, acknowledged_at, acknowledged_by, facts
from notices where tenant = :tenant and id < :before order by id desc limit :limit
