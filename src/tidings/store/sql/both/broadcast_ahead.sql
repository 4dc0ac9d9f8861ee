-- The broadcasts of a tenant that wait for a time between two instants, the earliest first; among a bounded number.
select b.id, b.name, b.channel, b.total, b.look_at as starts_at
from (select * from broadcasts where look_at is not null and look_at >= :since and look_at < :until
      order by look_at limit :window) b
where b.tenant = :tenant and b.state = 'new' order by b.look_at, b.id limit :limit
