-- The history line of what lot_rest will put off. Own file: with a single writer the two see the same rows.
insert into history (task, origin, state, attempt, detail, at)
select t.id, 'pending', 'pending', t.attempts, :reason, coalesce(:now, tidings_now())
from tasks t cross join messages m on m.task = t.id
where t.group_id = :group_id and t.state = 'pending' and t.id > :after and t.id <= :upto and t.due_at < :until and m.part = :part
