-- What became of records; what is not said of key, content and plan stays. Own file: a list goes in as JSON, which each
-- database reads in its own way.
update job_records set state = r.state, due_at = coalesce(r.due_at, 0), claimed_at = r.claimed_at, key = coalesce(r.key,
  job_records.key),
  mapped = r.mapped, hash = coalesce(r.hash, job_records.hash), target_id = coalesce(r.target_id, job_records.target_id),
    action = coalesce(r.action, job_records.action),
  before = coalesce(r.before, job_records.before), changes = coalesce(r.changes, job_records.changes),
    attempts = coalesce(r.attempts, job_records.attempts), failure = r.failure,
  field = r.field, fingerprint = r.fingerprint, reason = r.reason, links = coalesce(r.links, false),
  changed_at = coalesce(cast(:now as bigint), tidings_now())
from json_to_recordset(cast(:rows as json)) as r(seq bigint, state text, due_at bigint, claimed_at bigint, key text,
  mapped text, hash text, target_id text, action text, before text, changes text, attempts text, failure text, field text,
  fingerprint text, reason text, links boolean)
where job_records.seq = r.seq
