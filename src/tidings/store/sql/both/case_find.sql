-- One case.
select id, tenant, reason, key, state, conversation, workflow, message, opened_at, deadline_at, claimed_by, changed_at, closed_at, times, facts
from cases where id = :id and tenant = :tenant
