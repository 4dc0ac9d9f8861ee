-- A job by its id.
select j.n, j.id, j.tenant, j.name, j.pair, j.state, j.resume_state, j.reason, j.blocked_until, j.check_at, j.round, j.lookup, j.planned,
  j.version, j.mapping_hash, j.definition, j.created_at, j.changed_at, j.started_at, j.ended_at,
  j.done_before, j.pruning, j.pruned_at
from jobs j where j.id = :id
