-- Schedules that could not make what they should at their last run; one that has ended is told of for a while.
select id, tenant, name, last_at, problem from schedules
where problem is not null and (state <> 'ended' or last_at >= :since) order by id limit :limit
