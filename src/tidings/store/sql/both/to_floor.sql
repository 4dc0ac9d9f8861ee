-- The same for one recipient.
select min(task) as floor, count(*) as seen
from (select task from messages where tenant = :tenant and recipient = :recipient and task < :before
      order by task desc limit :window) w
