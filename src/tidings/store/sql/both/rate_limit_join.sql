-- A queue's rate: the least time between two sends.
insert into rate_limits (queue, interval) values (:queue, :interval)
on conflict (queue) do update set interval = excluded.interval
