-- Workflows of a conversation, newest first.
select id, tenant, conversation, squad, topic, state, version, schema, asked, plan, opened_at, changed_at, idle_at, closed_at, body
from workflows where tenant = :tenant and conversation = :conversation order by id desc limit :limit
