-- What the engine says about every message of a drill, page by page, and when each was last moved on from being at work.
select t.id, m.id as message, m.recipient, t.state, t.unknown, t.crashes,
  (select max(h.at) from history h where h.task = t.id and h.origin = 'processing') as settled_at
from tasks t join messages m on m.task = t.id
where t.id > :after order by t.id limit :limit
