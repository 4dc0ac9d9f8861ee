-- Forget a page of recipients who never got a task, of broadcasts that ended long ago. Their number stays in the tally.
delete from messages where task in (
  select m.task from broadcasts b join messages m on m.group_id = b.group_id
  where b.ended_at < :before and b.taken < b.total and m.part is not null
    and not exists (select 1 from tasks t where t.id = m.task)
  limit :limit)
returning task
