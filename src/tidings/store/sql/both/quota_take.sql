-- Take messages of a tenant's quota of one day; no row back: too few are left.
insert into tenant_days (tenant, day, n)
select cast(:tenant as text), cast(:day as bigint), cast(:n as bigint) where cast(:n as bigint) <= cast(:most as bigint)
on conflict (tenant, day) do update set n = tenant_days.n + excluded.n
  where tenant_days.n + excluded.n <= cast(:most as bigint)
returning n
