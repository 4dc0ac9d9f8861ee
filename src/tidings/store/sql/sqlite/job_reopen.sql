-- Open records again in a batch of their own, if they are still quarantined, or wait.
-- Own file: a list goes in as JSON, which each database reads in its own way.
update job_records set state = 'ready', batch = :batch, due_at = 0, claimed_at = null, attempts = '{}', failure = null,
  field = null, fingerprint = null, reason = null, changed_at = coalesce(cast(:now as bigint), tidings_now())
where seq in (select g.value from json_each(:seqs) g) and fingerprint is not null
  and state in ('rejected', 'failed', 'conflict', 'waiting')
returning seq
