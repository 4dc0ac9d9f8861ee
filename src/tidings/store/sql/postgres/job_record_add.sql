-- Records of a page. Those of an earlier round start again; repairs stay while the source is unchanged.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into job_records (job, type, round, source_id, state, raw, failure, field, fingerprint, reason, changed_at)
select :job, :type, :round, r.id, r.state, r.raw, r.failure, r.field, r.fingerprint, r.reason,
  coalesce(cast(:now as bigint), tidings_now())
from json_to_recordset(cast(:rows as json)) as r(id text, state text, raw text, failure text, field text, fingerprint text,
  reason text)
on conflict (source_id, type, job) do update set round = excluded.round, changed_at = excluded.changed_at, due_at = 0,
  claimed_at = null, links = false, key = null, hash = null, action = null, before = null, changes = null, attempts = '{}',
  batch = null, mapped = null,
  original = case when job_records.original = coalesce(excluded.raw, '') then job_records.original end,
  raw = case when job_records.original = coalesce(excluded.raw, '') then job_records.raw else excluded.raw end,
  state = case when job_records.original = coalesce(excluded.raw, '') then 'extracted' else excluded.state end,
  failure = case when job_records.original = coalesce(excluded.raw, '') then null else excluded.failure end,
  field = case when job_records.original = coalesce(excluded.raw, '') then null else excluded.field end,
  fingerprint = case when job_records.original = coalesce(excluded.raw, '') then null else excluded.fingerprint end,
  reason = case when job_records.original = coalesce(excluded.raw, '') then null else excluded.reason end
