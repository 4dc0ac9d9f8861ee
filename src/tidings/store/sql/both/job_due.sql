-- Jobs that somebody should look after, the most urgent first.
select n, look_at, coalesce(cast(:now as bigint), tidings_now()) as now from jobs
where state in ('planning', 'running', 'paused') and (state <> 'paused' or parked_until is not null)
order by look_at limit :limit
