-- The rows of a run with the state of their messages, by page.
select r.source, r.key, r.kind, r.made, t.id as task, t.state, t.attempts, t.queue, t.ordering_key
from import_rows r left join broadcasts b on r.kind = 'broadcast' and b.id = r.made
left join tasks t on t.id = coalesce((select m.task from messages m where m.id = r.made),
  (select m.task from messages m where m.group_id = b.group_id and m.recipient = r.recipient))
where r.import = :run and r.key > :after and not r.undone order by r.key limit :limit
