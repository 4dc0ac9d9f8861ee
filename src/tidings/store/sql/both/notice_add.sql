-- Something to tell the admins; the same thing again, before anybody has acknowledged it, is counted.
insert into notices (id, tenant, key, reason, at, last_at, facts) values (:id, :tenant, :key, :reason, :at, :at, :facts)
on conflict (tenant, key) where acknowledged_at is null do update set times = notices.times + 1, last_at = excluded.last_at
returning id
