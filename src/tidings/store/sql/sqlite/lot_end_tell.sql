-- The history line of what lot_end will end. Own file: with a single writer the two see the same rows.
insert into history (task, origin, state, try, detail, at)
select id, 'pending', :state, tries, :reason, coalesce(:now, tidings_now()) from tasks
where lot = :lot and state = 'pending' and id > :after and id <= :upto
