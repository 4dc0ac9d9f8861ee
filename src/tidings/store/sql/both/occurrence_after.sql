-- Which occurrences of a schedule, from an instant on, have run already.
select at from occurrences where schedule = :schedule and at >= :at order by at limit :limit
