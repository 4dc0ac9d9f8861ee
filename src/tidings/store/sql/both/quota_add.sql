-- Count messages of a tenant's day, also beyond its quota: what a schedule makes is checked before.
insert into tenant_days (tenant, day, n) values (:tenant, :day, 1)
on conflict (tenant, day) do update set n = tenant_days.n + 1
