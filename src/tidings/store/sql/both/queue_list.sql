-- All queues as they stand.
select q.name, q.paused, q.halted, q.pause_reason, q.parked_until, q.park_reason, q.failures, q.opened_at, q.probe_at,
  q.on_unknown, q.deadline, q.stop_on_failure, q.mode, q.share, q.link, q.link_why, q.link_since,
  q.link_tries, l.interval, l.next_at
from queues q left join limits l on l.queue = q.name order by q.name
