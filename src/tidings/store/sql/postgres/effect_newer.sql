-- Later commands on the same half hours of the same squad that are known to be done.
-- Own file: a list goes in as JSON, which each database reads in its own way. A range in an order, so that no other index will do.
select g.task, e.first_slot, e.last_slot
from json_to_recordset(cast(:asked as json)) g(task bigint, calendar text, day text, squad text, first int, last int)
  cross join lateral (select first_slot, last_slot from effects
    where calendar = g.calendar and day >= g.day and day <= g.day and task > g.task and squad = g.squad
      and state = 'confirmed' and first_slot < g.last and last_slot > g.first order by day, task limit 1000) e
