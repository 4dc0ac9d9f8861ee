-- Batches of a round, newest first; `open`: only those that are not completed.
select id, type, phase, state, size, failures, written, unchanged, reason, spent, made_at, changed_at from job_batches
where job = :job and round = :round and (cast(:before as text) is null or id < :before)
  and (cast(:state as text) is null or state = :state) and (state <> 'completed' or not cast(:open as boolean))
order by id desc limit :limit
