-- What was said last in a conversation, newest first.
select n, message, squad, decision, sent_at, speaker, text, facts
from handled_messages where tenant = :tenant and conversation = :conversation order by n desc limit :limit
