-- Records of a page. One that an earlier round had begins anew. Own file: a list goes in as JSON, which each database
-- reads in its own way.
insert into job_records (job, type, round, source_id, state, raw, failure, field, fingerprint, reason, changed_at)
select :job, :type, :round, r.value ->> 'id', r.value ->> 'state', r.value ->> 'raw', r.value ->> 'failure',
  r.value ->> 'field',
  r.value ->> 'fingerprint', r.value ->> 'reason', coalesce(cast(:now as bigint), tidings_now())
from json_each(:rows) r where true
on conflict (source_id, type, job) do update set round = excluded.round, state = excluded.state, raw = excluded.raw,
  failure = excluded.failure, field = excluded.field, fingerprint = excluded.fingerprint, reason = excluded.reason,
  changed_at = excluded.changed_at, due_at = 0, claimed_at = null, links = false, key = null, hash = null, action = null,
  before = null, changes = null, tries = '{}', batch = null, mapped = null
