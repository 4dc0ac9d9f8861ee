-- What needs no handling: it ended on arrival, with a reason.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into inbox (id, tenant, source, platform_id, conversation, chat, sender, name, kind, original, reply_to, attachments,
  sent_at, received_at, ended, reason, text, raw)
select r.value ->> 'id', r.value ->> 'tenant', r.value ->> 'source', r.value ->> 'platform_id', r.value ->> 'conversation',
  r.value ->> 'chat', r.value ->> 'sender', r.value ->> 'name', r.value ->> 'kind', r.value ->> 'original',
  r.value ->> 'reply_to', r.value ->> 'attachments', r.value ->> 'sent_at', r.value ->> 'received_at', r.value ->> 'ended',
  r.value ->> 'reason', r.value ->> 'text', r.value ->> 'raw'
from json_each(:rows) r
