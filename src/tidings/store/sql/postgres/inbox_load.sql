-- What claimed tasks are about, and who spoke; the entry for this source goes before the one for all. Own file: arrays.
select i.task, i.n, i.id, i.tenant, i.source, i.conversation, i.chat, i.platform_id, i.sender,
  coalesce(i.edited_text, i.text), i.sent_at, i.reply_to, i.speaks_for, i.edited_at, i.deleted_at, i.ended, i.reason, i.kind, i.original, r.sender, r.name, r.squad, r.role
from inbox i left join lateral (select o.sender, o.name, o.squad, o.role from roster o
  where o.tenant = i.tenant and o.sender = coalesce(i.speaks_for, i.sender) and o.source in (i.source, '')
  order by o.source desc limit 1) r on true
where i.task = any(:ids::bigint[])
