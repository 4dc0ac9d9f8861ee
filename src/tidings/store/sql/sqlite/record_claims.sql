-- The history line of each task just claimed. Own file: a list goes in as an array in memory.
insert into history (task, origin, state, attempt, node, at)
select id, 'pending', 'processing', attempts, node, changed_at from tasks where id in (select value from carray(:ids))
