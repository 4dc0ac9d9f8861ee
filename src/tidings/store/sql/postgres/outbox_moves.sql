-- Events of these task transitions, as far as this transaction made them; a lost claim has none, and a retry has none
-- unless its cancellation was requested meanwhile. Own file: JSON as rows, and a row knows which transaction wrote it.
insert into outbox (at, tenant, type, subject, body)
select t.changed_at, t.tenant,
  'message.' || case t.state when 'done' then 'sent' else tidings_group_result(t.state, t.unknown, t.cancel_requested) end,
  m.id, json_build_object('attempts', t.attempts, 'reason', g.detail)::text
from json_to_recordset(:moves::json) g(id bigint, claim_no int, state text, detail text)
join tasks t on t.id = g.id join messages m on m.task = t.id
where t.claim_no = g.claim_no and t.state <> 'pending' and (t.state = g.state or (g.state = 'pending' and t.state = 'cancelled'))
  and t.xmin = pg_current_xact_id()::xid
