-- Tell of what could not be handled, as far as it was given up.
-- Own file: JSON as rows; with one working process nobody else can have settled the same claim.
insert into outbox (at, tenant, type, subject, body)
select t.changed_at, t.tenant, 'inbox.failed', i.id, json_object('id', i.id, 'source', i.source, 'chat', i.chat,
  'sender', i.sender, 'name', i.name, 'text', i.text, 'attempts', t.attempts, 'reason', g.value ->> 'reason')
from json_each(:moves) g cross join tasks t on t.id = g.value ->> 'task' cross join inbox i on i.task = t.id
where t.claim_no = g.value ->> 'claim_no' and t.state = 'failed' and g.value ->> 'state' = 'failed'
