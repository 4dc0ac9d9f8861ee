-- One broadcast by its lot.
select * from broadcasts where group_id = :group_id
