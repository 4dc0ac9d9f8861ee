-- One record, with what the source said.
select seq, type, source_id, state, key, target_id, hash, action, changes, before, failure, field, fingerprint, reason, attempts,
  due_at, claimed_at, changed_at, raw, mapped, round
from job_records where job = :job and type = :type and source_id = :source_id
