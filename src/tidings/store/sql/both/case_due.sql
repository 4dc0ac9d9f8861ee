-- Cases that should have been dealt with by now.
select id, tenant, reason, key, state, conversation, workflow, message, opened_at, deadline_at, claimed_by, changed_at, closed_at, times, facts
from cases where deadline_at <= :at order by deadline_at limit :limit
