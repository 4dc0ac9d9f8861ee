-- A notice for admins; repeated ones are counted until one is acknowledged.
insert into notices (id, tenant, key, reason, at, last_at, facts) values (:id, :tenant, :key, :reason, :at, :at, :facts)
on conflict (tenant, key) where acknowledged_at is null do update set times = notices.times + 1, last_at = excluded.last_at
returning id
