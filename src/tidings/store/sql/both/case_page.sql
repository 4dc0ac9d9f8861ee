-- Cases, newest first, from before a place; '' stands for any.
select id, tenant, reason, key, state, conversation, workflow, message, opened_at, deadline_at, claimed_by, changed_at, closed_at, times, facts
from cases where tenant = :tenant and id < :before and (:state = '' or state = :state) and (:reason = '' or reason = :reason)
order by id desc limit :limit
