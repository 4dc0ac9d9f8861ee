-- What is known before a message is worked through: whether it was heard before, who holds the conversation, and what of its squad is
-- kept ahead of it.
select t.n, t.held, t.facts,
  (select c.claimed_by from cases c where c.conversation = :conversation and c.tenant = :tenant
    and c.state in ('claimed', 'answered') limit 1) as holder,
  (select count(*) from hearings k where k.held = 'queued' and k.tenant = :tenant and k.conversation = :conversation
    and k.squad = :squad and (t.n is null or k.n < t.n)) as ahead
from (select 1 as one) x left join hearings t on t.message = :message
