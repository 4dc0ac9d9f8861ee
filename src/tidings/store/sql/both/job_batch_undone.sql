-- What was moved and taken out again does not count as moved: a batch with less than nothing.
insert into job_batches (id, job, type, round, phase, system, first, last, size, state, written, unchanged, reason, made_at,
  changed_at)
values (:id, :job, :type, :round, 'run', :system, 0, 0, :size, 'completed', 0 - cast(:written as integer), 0 - cast(:unchanged as integer), 'undone',
  coalesce(cast(:now as bigint), tidings_now()), coalesce(cast(:now as bigint), tidings_now()))
