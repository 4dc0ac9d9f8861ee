-- The workflow that made a plan.
select id, tenant, conversation, squad, topic, state, version, schema, asked, plan, opened_at, changed_at, idle_at, closed_at, body
from workflows where plan = :plan
