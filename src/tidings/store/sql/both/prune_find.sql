-- The next page of tasks by age, for the pruner.
select id, state, changed_at from tasks where id > :after order by id limit :limit
