-- The history line of each task just done. Own file: a list goes in as an array in memory.
insert into history (task, origin, state, try, node, at)
select id, 'processing', 'done', tries, :node, :now from tasks where id in (select value from carray(:ids))
