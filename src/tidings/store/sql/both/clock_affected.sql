-- What was done while the clock was ahead and keeps its own time: the latest of it, and how many schedules and messages.
select
  (select coalesce(max(m.accepted_at), 0) from (select accepted_at from messages order by task desc limit 1) m) as accepted_at,
  (select count(*) from schedules where last_at > :at and next_at is not null) as schedules,
  (select coalesce(max(last_at), 0) from schedules) as ran_at,
  (select count(*) from (select task, accepted_at from messages order by task desc limit 10000) a
    join tasks t on t.id = a.task and t.state = 'pending' where a.accepted_at > :at and t.due_at > :at) as messages
