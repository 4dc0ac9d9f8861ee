-- The first task of a lot.
select min((select min(m.task) from messages m where m.lot = p.lot and m.part = p.part)) as first
from broadcast_parts p where p.lot = :lot
