-- Forget a lot.
delete from task_groups where id = :group_id
