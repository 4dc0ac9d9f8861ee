-- Move schedules on: last run and next run change with the log and with what was made. Own file: a list as JSON.
update schedules set state = g.value ->> 'state', next_at = g.value ->> 'next_at', fired = g.value ->> 'fired',
  last_at = g.value ->> 'last_at', last_created = g.value ->> 'last_created', held_at = g.value ->> 'held_at',
  problem = g.value ->> 'problem',
  version = schedules.version + 1
from json_each(:moves) g
where schedules.id = g.value ->> 'id' and schedules.version = g.value ->> 'version'
  and schedules.next_at = g.value ->> 'due'
