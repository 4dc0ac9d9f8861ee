-- The schedules of a tenant that fire before an instant, the earliest first; among a bounded number.
select s.id, s.name, s.rule, s.timezone, s.creates, s.body, s.start_at, s.end_at, s.most, s.fired, s.next_at
from (select * from schedules where next_at is not null and next_at < :until order by next_at limit :window) s
where s.tenant = :tenant order by s.next_at, s.id limit :limit
