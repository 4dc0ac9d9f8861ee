-- Forget a page of recipients who never got a task, of broadcasts that ended long ago. Their number stays in the tally.
delete from messages where task in (
  select m.task from messages m join broadcasts b on b.lot = m.lot
  where b.ended_at < :before and m.part is not null and not exists (select 1 from tasks t where t.id = m.task)
  order by m.task limit :limit)
returning task
