-- When a part begins by its own clock.
update broadcast_parts set starts_at = :starts_at where group_id = :group_id and part = :part
