-- A record that took its node down again and again is quarantined.
update job_records set state = 'failed', failure = 'program', fingerprint = :fingerprint, reason = :reason,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where seq = :seq and state in ('extracted', 'ready', 'claimed', 'unknown')
returning seq
