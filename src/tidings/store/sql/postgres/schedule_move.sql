-- Move schedules on: last run and next run change with the log and with what was made. Own file: a list as JSON.
update schedules s set state = g.state, next_at = g.next_at, fired = g.fired, last_at = g.last_at, last_created = g.last_created,
  held_at = g.held_at, problem = g.problem, version = s.version + 1
from jsonb_to_recordset(cast(:moves as jsonb)) as g(id text, version int, due bigint, state text, next_at bigint, fired int,
  last_at bigint, last_created text, held_at bigint, problem text)
where s.id = g.id and s.version = g.version and s.next_at is not distinct from g.due  -- found by id, never by time
