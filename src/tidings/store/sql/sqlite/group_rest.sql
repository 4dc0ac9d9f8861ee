-- Nothing of a part is due before its quiet hours are over. Own file: lot_rest_tell has written the history.
update tasks set due_at = :until, expires_at = expires_at + (:until - due_at)
where group_id = :group_id and state = 'pending' and id > :after and id <= :upto and due_at < :until
  and (select m.part from messages m where m.task = tasks.id) = :part
