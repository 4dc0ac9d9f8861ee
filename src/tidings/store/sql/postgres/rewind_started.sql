-- What is claimed in the surviving copy may have started, and even ended, on the lost one: the reaper must not give it back
-- as if it had not. Own file: update from.
update tasks t set started_at = coalesce(t.started_at, :until::bigint)
from nodes n where t.node = n.id and t.state = 'processing' and t.changed_at <= :until::bigint
returning t.id
