-- Provider ids of these transitions, as far as committed; earlier receipts find their message.
-- Own file: JSON as rows. In one order, so that nobody waits for each other.
insert into receipts (channel, name, task, last, seen_at)
select g.channel, g.name, t.id, g.last, t.changed_at
from json_to_recordset(:names::json) g(channel text, name text, task bigint, claim_no int, last boolean)
join tasks t on t.id = g.task
where t.claim_no = g.claim_no and t.state = 'done'
order by g.channel, g.name
on conflict (channel, name) do update
set task = coalesce(receipts.task, excluded.task), last = excluded.last, open = false
