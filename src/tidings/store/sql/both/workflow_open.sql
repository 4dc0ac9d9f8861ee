-- The open workflows of a conversation, oldest first.
select id, tenant, conversation, squad, topic, state, version, schema, asked, plan, opened_at, changed_at, idle_at, closed_at, body
from workflows where tenant = :tenant and conversation = :conversation and closed_at is null order by id
