-- The same for one of the states that have an index.
select min(id) as floor, count(*) as seen
from (select id from tasks where state = :state and state >= 'expired' and state <= 'failed' and id < :before
      order by id desc limit :window) w
