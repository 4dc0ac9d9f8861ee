-- Cases that are not closed, newest first, from before a place; reviews only where they are asked for.
select id, tenant, reason, key, state, conversation, workflow, message, opened_at, deadline_at, claimed_by, changed_at, closed_at, times, facts
from cases where tenant = :tenant and state in ('open', 'claimed', 'answered') and id < :before
  and (reason = :reason or (:reason = '' and reason <> 'review'))
order by id desc limit :limit
