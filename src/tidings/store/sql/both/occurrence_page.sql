-- The log of a schedule before a place, newest first.
select at, recorded_at, outcome, created, detail from occurrences
where schedule = :schedule and at < :before order by at desc limit :limit
