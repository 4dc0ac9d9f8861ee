-- Delete a task group.
delete from task_groups where id = :group_id
