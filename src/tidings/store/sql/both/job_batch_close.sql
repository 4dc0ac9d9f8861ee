-- A batch that others took over.
update job_batches set state = :state, reason = :reason, changed_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and state = :expected
returning id
