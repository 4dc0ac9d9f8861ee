-- Jobs that somebody should look after, the most urgent first.
select n, check_at, coalesce(cast(:now as bigint), tidings_now()) as now from jobs
where state in ('planning', 'running', 'paused') and (state <> 'paused' or blocked_until is not null)
order by check_at limit :limit
