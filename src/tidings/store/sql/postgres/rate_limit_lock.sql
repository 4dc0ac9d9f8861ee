-- Rate limits of these queues, locked until the claim has reserved its slots. Own file: row locks.
select l.queue, l.interval, l.next_at, coalesce(:now::bigint, tidings_now()) as now
from rate_limits l where l.queue = any(:queues::text[]) order by l.queue for update
