-- A message that had ended unheard is handled after all, by the task that this transaction has put at the end of its conversation's
-- line; its order key is held. No row back: it is not as it was read.
update inbox set ended = null, reason = null,
  task = (select max(t.id) from tasks t where t.queue = 'inbound' and t.ordering_key = inbox.conversation and t.state = 'pending')
where n = :n and task is not distinct from cast(:task as bigint) and ended is not distinct from cast(:ended as text)
returning n
