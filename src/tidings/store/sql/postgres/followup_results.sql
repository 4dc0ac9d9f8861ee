-- What became of the commands of some plans, in order. Own file: a list goes in as JSON, which each database reads in its own way.
select e.plan, e.action, e.squad, e.day, e.begins, e.ends, e.state, e.reported
from json_array_elements_text(cast(:plans as json)) g
  cross join lateral (select * from effects where plan = g.value offset 0) e
order by e.task
