-- Schedules whose last run failed; an ended one is listed for a while.
select id, tenant, name, last_at, problem from schedules
where problem is not null and (state <> 'ended' or last_at >= :since) order by id limit :limit
