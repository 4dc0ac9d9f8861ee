-- The plans that there is news of, each with its workflow and the newest message that it heard. Own file: arrays.
select f.task, f.plan, w.id, w.tenant, w.conversation, w.squad, w.topic, w.state, w.version, w.schema, w.asked, w.opened_at,
  w.body, h.speaker
from followups f left join workflows w on w.plan = f.plan
  left join lateral (select speaker from handled_messages where tenant = w.tenant and conversation = w.conversation and workflow = w.id
    order by n desc limit 1) h on true
where f.task = any(:ids::bigint[])
