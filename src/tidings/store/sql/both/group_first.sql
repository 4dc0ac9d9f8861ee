-- The first task of a group.
select min((select min(m.task) from messages m where m.group_id = p.group_id and m.part = p.part)) as first
from broadcast_parts p where p.group_id = :group_id
