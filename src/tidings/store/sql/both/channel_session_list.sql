-- All sessions, and when somebody should look at each.
select name, session_state, check_at from queues where session_state is not null order by name
