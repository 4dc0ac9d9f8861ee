-- The parts of a broadcast, each of one time zone.
select part, timezone, total, taken, taken_to, starts_at from broadcast_parts where group_id = :group_id order by part
