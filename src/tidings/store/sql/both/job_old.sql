-- The job that ended first of those whose records and logs are still kept, if it is old enough.
select n from jobs where pruned_at is null and ended_at < :before order by ended_at limit 1
