-- What was decided about the messages of a conversation, oldest first, from after a place.
select n, message, tenant, conversation, squad, workflow, decision, reason, held, released_at, at, heard_at, speaker, text,
  facts
from hearings where tenant = :tenant and conversation = :conversation and n > cast(:after as bigint) order by n limit :limit
