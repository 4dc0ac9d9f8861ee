-- The tasks of messages that a provider names by our own id. Own file: JSON as rows.
select m.channel, m.id as message, t.id, t.state, t.attempts, t.unknown, t.queue, t.ordering_key
from json_to_recordset(:rows::json) g(channel text, message text)
join messages m on m.id = g.message and m.channel = g.channel join tasks t on t.id = m.task
