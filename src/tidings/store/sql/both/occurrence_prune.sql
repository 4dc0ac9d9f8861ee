-- Forget a page of the log that is old.
delete from occurrences where (schedule, at) in (
  select schedule, at from occurrences where told_at < :before order by told_at limit :limit)
returning at
