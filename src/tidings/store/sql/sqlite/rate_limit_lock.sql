-- The rate of one queue. Own file: the writer's transaction holds it already.
select queue, interval, next_at, coalesce(:now, tidings_now()) as now from rate_limits where queue = :queue
