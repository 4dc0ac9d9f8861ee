-- What became of records; what is not said of key, content and plan stays. Own file: a list goes in as JSON, which each
-- database reads in its own way.
update job_records set state = r.value ->> 'state', due_at = coalesce(r.value ->> 'due_at', 0),
  claimed_at = r.value ->> 'claimed_at', key = coalesce(r.value ->> 'key', job_records.key),
  mapped = r.value ->> 'mapped', hash = coalesce(r.value ->> 'hash', job_records.hash),
    target_id = coalesce(r.value ->> 'target_id', job_records.target_id), action = coalesce(r.value ->> 'action',
    job_records.action),
  before = coalesce(r.value ->> 'before', job_records.before), changes = coalesce(r.value ->> 'changes',
    job_records.changes), attempts = coalesce(r.value ->> 'attempts', job_records.attempts), failure = r.value ->> 'failure',
  field = r.value ->> 'field', fingerprint = r.value ->> 'fingerprint', reason = r.value ->> 'reason',
    links = coalesce(r.value ->> 'links', false),
  changed_at = coalesce(cast(:now as bigint), tidings_now())
from json_each(:rows) r where job_records.seq = r.value ->> 'seq'
