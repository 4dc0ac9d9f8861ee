-- The same for one of the states that have an index.
select min(id) as floor, count(*) as seen
from (select id from tasks where state = :state and state in ('pending', 'failed', 'cancelled', 'expired') and id < :before
      order by id desc limit :window) w
