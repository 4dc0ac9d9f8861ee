-- A replay goes on, if nobody has moved the job since; the rest that it has given the job is prolonged.
update jobs set done_before = done_before - :opened, blocked_until = case when cast(:lease as bigint) is null
  then blocked_until else coalesce(cast(:now as bigint), tidings_now()) + cast(:lease as bigint) end
where n = :n and version = :version
returning n
