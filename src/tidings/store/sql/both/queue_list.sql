-- All queues as they stand.
select q.name, q.paused, q.paused_by_engine, q.pause_reason, q.blocked_until, q.block_reason, q.failures, q.opened_at, q.probe_at,
  q.on_unknown, q.deadline, q.stop_on_failure, q.mode, q.share, q.session_state, q.session_reason, q.session_since,
  q.reconnects, l.interval, l.next_at
from queues q left join rate_limits l on l.queue = q.name order by q.name
