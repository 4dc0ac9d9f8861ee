-- When a part begins by its own clock.
update broadcast_parts set starts_at = :starts_at where lot = :lot and part = :part
