-- Nothing of a part is due before its quiet hours are over; each with its history line. Own file: one statement.
with moved as (
  update tasks t set due_at = :until, expires_at = t.expires_at + (:until - t.due_at)
  where t.group_id = :group_id and t.state = 'pending' and t.id > :after and t.id <= :upto and t.due_at < :until
    and (select m.part from messages m where m.task = t.id) = cast(:part as smallint)
  returning t.id, t.attempts
)
insert into history (task, origin, state, attempt, detail, at)
select id, 'pending', 'pending', attempts, :reason, coalesce(:now::bigint, tidings_now()) from moved
