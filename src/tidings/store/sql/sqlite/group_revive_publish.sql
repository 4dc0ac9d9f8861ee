-- The history line of what lot_revive will start afresh. Own file: with a single writer the two see the same rows.
insert into history (task, origin, state, attempt, detail, at)
select id, 'failed', 'pending', 0, :reason, coalesce(:now, tidings_now()) from tasks
where state = 'failed' and state >= 'expired' and state <= 'failed' and id > :after and id <= :upto
  and group_id = :group_id and (:unknown or not unknown)
