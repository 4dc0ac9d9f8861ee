-- All sessions, and when somebody should look at each.
select name, link, look_at from queues where link is not null order by name
