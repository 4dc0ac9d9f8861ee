-- A part's cursor moves behind those just taken; refused when there were not as many as counted.
update broadcast_parts set taken = taken + :n, taken_to = p.last
from (select max(m.task) as last, count(*) as n from (
    select task from messages where group_id = :group_id and part = :part and task > :after order by task limit :n) m) p
where group_id = :group_id and part = :part and taken_to = :after and p.n = :n
returning part
