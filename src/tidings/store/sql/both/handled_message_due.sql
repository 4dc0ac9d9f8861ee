-- Kept messages whose squad is free again, or whose conversation a person has given back, oldest first.
select t.message, t.tenant, t.conversation from handled_messages t
where t.deferred in ('queued', 'person') and t.released_at is null
  and case when t.deferred = 'queued' then not exists (select 1 from workflows w where w.tenant = t.tenant
      and w.conversation = t.conversation and w.squad = t.squad and w.closed_at is null
      and w.state in ('new', 'ready', 'executing'))
    else not exists (select 1 from cases c where c.conversation = t.conversation and c.tenant = t.tenant
      and c.state in ('claimed', 'answered')) end
order by t.n limit :limit
