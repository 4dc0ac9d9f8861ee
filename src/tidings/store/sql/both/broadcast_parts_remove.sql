-- Forget the parts of a broadcast.
delete from broadcast_parts where group_id = :group_id
