-- A repaired record, as it should have come from the source; its tag says who brought it, `given` what the source had said.
update job_records set original = coalesce(original, raw, ''), raw = :raw, batch = :tag,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where job = :job and type = :type and source_id = :source_id and state in ('rejected', 'failed', 'conflict', 'waiting')
returning seq
