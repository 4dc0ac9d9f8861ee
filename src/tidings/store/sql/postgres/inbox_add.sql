-- What needs no handling: it ended on arrival, with a reason.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into inbox (id, tenant, source, platform_id, conversation, chat, sender, name, kind, original, reply_to, attachments,
  sent_at, received_at, ended, reason, text, raw)
select r.id, r.tenant, r.source, r.platform_id, r.conversation, r.chat, r.sender, r.name, r.kind, r.original, r.reply_to,
  r.attachments, r.sent_at, r.received_at, r.ended, r.reason, r.text, r.raw
from json_to_recordset(cast(:rows as json)) as r(id text, tenant text, source text, platform_id text, conversation text,
  chat text, sender text, name text, kind text, original text, reply_to text, attachments int, sent_at bigint,
  received_at bigint, ended text, reason text, text text, raw text)
