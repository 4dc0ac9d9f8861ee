-- Later commands on the same half hours of the same squad that are known to be done.
-- Own file: a list goes in as JSON, which each database reads in its own way.
select g.value ->> 'task' as task, e.first_slot, e.last_slot
from json_each(:asked) g cross join effects e
where e.calendar = g.value ->> 'calendar' and e.day = g.value ->> 'day' and e.task > g.value ->> 'task'
  and e.squad = g.value ->> 'squad' and e.state = 'confirmed'
  and e.first_slot < g.value ->> 'last' and e.last_slot > g.value ->> 'first'
