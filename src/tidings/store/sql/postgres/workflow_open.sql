-- The open workflows of some conversations, oldest first. Own file: a list goes in as JSON, which each database reads in its own
-- way.
select w.id, w.tenant, w.conversation, w.squad, w.topic, w.state, w.version, w.schema, w.asked, w.plan, w.opened_at,
  w.changed_at, w.idle_at, w.closed_at, w.body
from json_to_recordset(cast(:asked as json)) g(tenant text, conversation text)
  cross join lateral (select * from workflows
    where tenant = g.tenant and conversation = g.conversation and closed_at is null offset 0) w
order by w.id
