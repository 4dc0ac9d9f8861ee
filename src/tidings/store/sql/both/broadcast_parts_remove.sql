-- Forget the parts of a broadcast.
delete from broadcast_parts where lot = :lot
