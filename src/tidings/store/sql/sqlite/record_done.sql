-- The history line of each task just done. Own file: a list goes in as an array in memory.
insert into history (task, origin, state, attempt, node, at)
select id, 'processing', 'done', attempts, :node, :now from tasks where id in (select value from carray(:ids))
