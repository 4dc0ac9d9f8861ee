-- The parts of a broadcast, each of one time zone.
select part, zone, total, taken, taken_to, starts_at from broadcast_parts where lot = :lot order by part
