-- The other database does not answer.
update write_backs set failures = failures + 1, problem = :problem,
  failing_since = coalesce(failing_since, cast(:now as bigint), tidings_now()),
  next_at = coalesce(cast(:now as bigint), tidings_now()) + :delay where source = :source
