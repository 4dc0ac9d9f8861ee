-- What a node still holds, with what its queue says about deadlines.
select t.id, t.tenant, t.queue, t.kind, t.priority, t.due_at, t.attempts, t.throttles, t.claim_no, t.crashes, t.unknown,
  t.ordering_key, t.expires_at, t.max_attempts, t.started_at, t.changed_at, q.deadline, q.on_unknown
from tasks t left join queues q on q.name = t.queue
where t.node = :node and t.state = 'processing' and t.id > :after
order by t.id limit :limit
