-- Open records again in a batch of their own, if they are still quarantined, or wait.
-- Own file: a list goes in as JSON, which each database reads in its own way.
update job_records set state = 'ready', batch = :batch, due_at = 0, claimed_at = null, attempts = '{}', failure = null,
  field = null, fingerprint = null, reason = null, changed_at = coalesce(cast(:now as bigint), tidings_now())
where seq = any(array(select cast(g.value as bigint) from json_array_elements_text(cast(:seqs as json)) g))
  and fingerprint is not null and state in ('rejected', 'failed', 'conflict', 'waiting')
returning seq
