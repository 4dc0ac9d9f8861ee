-- Evidence of sending (a late result, a receipt): an open or unknown task becomes done.
-- A failure that was certain (not unknown) stays a failure.
update tasks set state = 'done', category = null, changed_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and (state = 'pending' or (state = 'failed' and unknown)) and state = :expected
returning id, attempts, queue, ordering_key, changed_at
