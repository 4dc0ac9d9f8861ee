-- What was decided about the messages of a conversation, oldest first, from after a place.
select n, message, tenant, conversation, squad, workflow, decision, reason, deferred, released_at, at, sent_at, speaker, text,
  facts
from handled_messages where tenant = :tenant and conversation = :conversation and n > cast(:after as bigint) order by n limit :limit
