-- Forget processes that left so long ago that no history names them. Only among the oldest, so that a step is short.
delete from nodes where id in (select id from nodes order by id limit 1000) and state = 'gone' and seen_at < :before
  and not exists (select 1 from tasks t where t.node = nodes.id and t.state = 'processing')
returning id
