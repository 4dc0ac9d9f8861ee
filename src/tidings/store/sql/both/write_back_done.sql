-- A page was written.
update write_backs set failures = 0, problem = null, failing_since = null, written = written + :n,
  next_at = coalesce(cast(:now as bigint), tidings_now()), last_at = coalesce(cast(:now as bigint), tidings_now()) where source = :source
