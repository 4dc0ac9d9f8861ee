-- The open workflows of some conversations, oldest first. Own file: a list goes in as JSON, which each database reads in its own
-- way.
select w.id, w.tenant, w.conversation, w.squad, w.topic, w.state, w.version, w.schema, w.asked, w.plan, w.opened_at,
  w.changed_at, w.idle_at, w.closed_at, w.body
from json_each(:asked) g cross join workflows w
where w.tenant = g.value ->> 'tenant' and w.conversation = g.value ->> 'conversation' and w.closed_at is null
order by w.id
