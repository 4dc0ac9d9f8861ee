-- Jobs, the newest first.
select j.n, j.id, j.tenant, j.name, j.pair, j.state, j.resume_state, j.reason, j.blocked_until, j.check_at, j.round, j.lookup, j.planned,
  j.version, j.mapping_hash, j.definition, j.created_at, j.changed_at, j.started_at, j.ended_at,
  j.done_before, j.pruning, j.pruned_at
from jobs j
where j.n < :before and (cast(:tenant as text) is null or j.tenant = :tenant)
  and (cast(:state as text) is null or j.state = :state)
order by j.n desc limit :limit
