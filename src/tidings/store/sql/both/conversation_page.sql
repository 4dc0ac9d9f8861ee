-- Conversations by their newest message, from before a place; looks at the newest 20,000 messages before it.
select h.conversation, max(h.n) as n, count(*) as handled_messages, max(h.at) as at
from handled_messages h
where h.tenant = :tenant and h.n < cast(:before as bigint)
  and h.n > (select coalesce(max(n), 0) from handled_messages where n < cast(:before as bigint)) - 20000
  and not exists (select 1 from handled_messages k where k.tenant = h.tenant and k.conversation = h.conversation
    and k.n >= cast(:before as bigint))
group by h.conversation order by 2 desc limit :limit
