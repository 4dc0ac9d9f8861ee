-- Tell of what could not be handled, as far as this transaction has given it up.
-- Own file: JSON as rows, and a row knows which transaction wrote it.
insert into outbox (at, tenant, type, subject, body)
select t.changed_at, t.tenant, 'inbox.failed', i.id, json_build_object('id', i.id, 'source', i.source, 'chat', i.chat,
  'sender', i.sender, 'name', i.name, 'text', i.text, 'attempts', t.attempts, 'reason', g.reason)::text
from json_to_recordset(cast(:moves as json)) g(task bigint, claim_no int, state text, reason text)
  join tasks t on t.id = g.task join inbox i on i.task = t.id
where t.claim_no = g.claim_no and t.state = 'failed' and g.state = 'failed' and t.xmin = pg_current_xact_id()::xid
