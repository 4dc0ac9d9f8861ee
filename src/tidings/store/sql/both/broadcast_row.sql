-- One broadcast by its task group.
select * from broadcasts where group_id = :group_id
