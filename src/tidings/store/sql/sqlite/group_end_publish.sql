-- The history line of what lot_end will end. Own file: with a single writer the two see the same rows.
insert into history (task, origin, state, attempt, detail, at)
select id, 'pending', :state, attempts, :reason, coalesce(:now, tidings_now()) from tasks
where group_id = :group_id and state = 'pending' and id > :after and id <= :upto
