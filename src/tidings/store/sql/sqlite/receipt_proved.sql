-- The tasks of messages that a provider names by our own id. Own file: JSON as rows.
select m.channel, m.id as message, t.id, t.state, t.attempts, t.unknown, t.queue, t.ordering_key
from json_each(:rows) g cross join messages m on m.id = g.value ->> 'message' and m.channel = g.value ->> 'channel'
cross join tasks t on t.id = m.task
