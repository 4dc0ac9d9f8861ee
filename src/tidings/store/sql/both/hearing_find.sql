-- What was decided about one message.
select n, message, tenant, conversation, squad, workflow, decision, reason, held, released_at, at, heard_at, speaker, text,
  facts
from hearings where message = :message
