-- The plans that there is news of, each with its workflow and the newest message that it heard.
-- Own file: a list goes in as an array in memory.
select f.task, f.plan, w.id, w.tenant, w.conversation, w.squad, w.topic, w.state, w.version, w.schema, w.asked, w.opened_at,
  w.body, (select h.speaker from handled_messages h where h.tenant = w.tenant and h.conversation = w.conversation and h.workflow = w.id
    order by h.n desc limit 1)
from followups f left join workflows w on w.plan = f.plan
where f.task in (select value from carray(:ids))
