-- Workflows in which nothing happened for too long, longest first.
select id, tenant, conversation, squad, topic, state, version, schema, asked, plan, opened_at, changed_at, idle_at, closed_at, body
from workflows where idle_at <= :at order by idle_at limit :limit
