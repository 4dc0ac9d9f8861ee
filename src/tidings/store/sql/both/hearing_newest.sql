-- What was said last in a conversation, newest first.
select n, message, squad, decision, heard_at, speaker, text, facts
from hearings where tenant = :tenant and conversation = :conversation order by n desc limit :limit
