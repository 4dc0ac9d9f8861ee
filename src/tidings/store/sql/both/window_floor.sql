-- Where a bounded look at the tasks ended, and how many it saw.
select min(id) as floor, count(*) as seen from (select id from tasks where id < :before order by id desc limit :window) w
