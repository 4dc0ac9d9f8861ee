-- Forget a page of the log that is old.
delete from occurrences where (schedule, at) in (
  select schedule, at from occurrences where recorded_at < :before order by recorded_at limit :limit)
returning at
