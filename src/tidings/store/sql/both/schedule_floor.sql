-- The last of the schedules that a page scans, and their number.
select min(id) as floor, count(*) as seen
from (select id from schedules where tenant = :tenant and id < :before order by id desc limit :window) s
