-- Provider ids of these transitions, as far as committed; earlier receipts find their message.
-- Own file: JSON as rows.
insert into receipts (channel, name, task, last, seen_at)
select g.value ->> 'channel', g.value ->> 'name', t.id, g.value ->> 'last', t.changed_at
from json_each(:names) g cross join tasks t on t.id = g.value ->> 'task'
where t.claim_no = g.value ->> 'claim_no' and t.state = 'done'
on conflict (channel, name) do update
set task = coalesce(receipts.task, excluded.task), last = excluded.last, open = false
