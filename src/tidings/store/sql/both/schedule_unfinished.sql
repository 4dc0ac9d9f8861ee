-- Whether the message or broadcast of an occurrence is not finished.
select 1 as unfinished
where exists (select 1 from messages m join tasks t on t.id = m.task where m.id = :id and t.state in ('pending', 'processing'))
  or exists (select 1 from broadcasts where id = :id and state in ('loading', 'ready', 'running', 'paused'))
