-- What was decided about one message.
select n, message, tenant, conversation, squad, workflow, decision, reason, deferred, released_at, at, sent_at, speaker, text,
  facts
from handled_messages where message = :message
