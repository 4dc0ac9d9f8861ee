-- A job by its id.
select j.n, j.id, j.tenant, j.name, j.pair, j.state, j.held, j.reason, j.parked_until, j.look_at, j.round, j.looks, j.planned,
  j.version, j.mapping_hash, j.definition, j.created_at, j.changed_at, j.started_at, j.ended_at,
  j.done_before, j.forgets, j.forgotten_at
from jobs j where j.id = :id
