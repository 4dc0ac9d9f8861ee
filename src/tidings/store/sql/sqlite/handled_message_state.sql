-- What is known before messages are worked through: whether each was heard before, who holds its conversation, and what of its
-- squad is kept ahead of it. Own file: a list goes in as JSON, which each database reads in its own way.
select g.message, t.n, t.deferred, t.facts,
  (select c.claimed_by from cases c where c.conversation = g.conversation and c.tenant = g.tenant
    and c.state in ('claimed', 'answered') limit 1) as holder,
  (select count(*) from handled_messages k where k.deferred = 'queued' and k.tenant = g.tenant and k.conversation = g.conversation
    and k.squad = g.squad and (t.n is null or k.n < t.n)) as ahead
from (select value ->> 'message' as message, value ->> 'tenant' as tenant, value ->> 'conversation' as conversation,
    value ->> 'squad' as squad from json_each(:asked)) g
  left join handled_messages t on t.message = g.message
