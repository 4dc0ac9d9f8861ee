-- Proofs that came while their message was at work, and how it stands now.
select r.channel, r.name, t.id, t.state, t.attempts, t.unknown, t.queue, t.ordering_key
from receipts r left join tasks t on t.id = r.task where r.open order by r.seen_at limit :limit
