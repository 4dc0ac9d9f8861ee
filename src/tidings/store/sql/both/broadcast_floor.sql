-- Where a bounded walk over recipients ended, and how many it saw.
select w.part, w.task, w.seen
from (select m.part, m.task, row_number() over (order by m.part, m.task) as seen
  from (select part, task from messages
        where group_id = :group_id and part is not null and (part, task) > (cast(:part as smallint), cast(:after as bigint))
        order by part, task limit :window) m) w
order by w.seen desc limit 1
