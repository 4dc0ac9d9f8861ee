-- Events of these task transitions, as far as they were made; a lost claim has none, and a retry has none unless its
-- cancellation was requested meanwhile. Own file: JSON as rows; with one working process nobody else can have settled the same claim.
insert into outbox (at, tenant, type, subject, body)
select t.changed_at, t.tenant, 'message.' || case when t.state = 'done' then 'sent'
    when t.state = 'failed' and t.unknown then 'unknown' when t.state = 'cancelled' and not t.cancel_requested then 'skipped'
    else t.state end,
  m.id, json_object('attempts', t.attempts, 'reason', g.value ->> 'detail')
from json_each(:moves) g cross join tasks t on t.id = g.value ->> 'id' cross join messages m on m.task = t.id
where t.claim_no = g.value ->> 'claim_no' and t.state <> 'pending'
  and (t.state = g.value ->> 'state' or (g.value ->> 'state' = 'pending' and t.state = 'cancelled'))
