-- What would have been sent. Written once, however often it is tried. Own file: JSON as rows.
insert into shadows (channel, side, recipient, digest, at, ref)
select m.channel, 'ours', m.recipient, g.digest, m.scheduled_at, m.id
from json_to_recordset(:rows::json) g(task bigint, digest text) join messages m on m.task = g.task
on conflict do nothing
