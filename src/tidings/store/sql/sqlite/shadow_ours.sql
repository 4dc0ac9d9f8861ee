-- What would have been sent. Written once, however often it is tried. Own file: JSON as rows.
insert into shadows (channel, side, recipient, digest, at, ref)
select m.channel, 'ours', m.recipient, g.value ->> 'digest', m.scheduled_at, m.id
from json_each(:rows) g cross join messages m on m.task = g.value ->> 'task' where true
on conflict do nothing
