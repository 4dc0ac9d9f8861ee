-- One command of the ledger, by its key.
select task, key, plan, tenant, calendar, day, squad, action, begins, ends, first_slot, last_slot, conversation, who, undoes,
  state, claim_no, attempts, pre, expected, evidence, planned_at, claimed_at, ended_at, reported
from effects where key = :key
