-- The ledger of one calendar, newest first.
select task, key, plan, tenant, calendar, day, squad, action, begins, ends, first_slot, last_slot, conversation, who, undoes,
  state, claim_no, attempts, pre, expected, evidence, planned_at, claimed_at, ended_at, reported
from effects where calendar = :calendar and tenant = :tenant and task < :before
  and (cast(:day as text) is null or day = :day) order by task desc limit :limit
