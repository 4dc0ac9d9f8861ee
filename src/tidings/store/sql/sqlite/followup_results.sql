-- What became of the commands of some plans, in order. Own file: a list goes in as JSON, which each database reads in its own way.
select e.plan, e.action, e.squad, e.day, e.begins, e.ends, e.state, e.reported
from json_each(:plans) g cross join effects e where e.plan = g.value order by e.task
