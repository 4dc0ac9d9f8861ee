-- The earliest task of each queue and priority that has one. Own file: a loose index scan.
with recursive heads(queue, priority) as (
  select name, (select priority from tasks indexed by tasks_due
    where queue = name and state = 'pending' and head order by priority limit 1) from queues
  union all
  select h.queue, (select t.priority from tasks t indexed by tasks_due
    where t.queue = h.queue and t.state = 'pending' and t.head and t.priority > h.priority order by t.priority limit 1)
  from heads h where h.priority is not null
)
select h.queue, h.priority, (select t.due_at from tasks t indexed by tasks_due
    where t.queue = h.queue and t.priority = h.priority and t.state = 'pending' and t.head order by t.due_at limit 1)
from heads h where h.priority is not null
