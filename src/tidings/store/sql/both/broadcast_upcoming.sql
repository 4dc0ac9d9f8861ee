-- The broadcasts of a tenant that wait for a time between two instants, the earliest first; among a bounded number.
select b.id, b.name, b.channel, b.total, b.check_at as starts_at
from (select * from broadcasts where check_at is not null and check_at >= :since and check_at < :until
      order by check_at limit :window) b
where b.tenant = :tenant and b.state = 'ready' order by b.check_at, b.id limit :limit
