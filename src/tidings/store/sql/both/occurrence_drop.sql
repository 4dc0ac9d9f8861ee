-- Forget a page of the log of one schedule.
delete from occurrences where schedule = :schedule and at in (
  select at from occurrences where schedule = :schedule order by at limit :limit)
returning at
