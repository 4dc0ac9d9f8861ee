-- What is at work in a drill, with whom, and whether its start is written down.
select m.recipient, t.started_at is not null as begun, n.name as node
from nodes n join tasks t on t.node = n.id and t.state = 'processing' join messages m on m.task = t.id
