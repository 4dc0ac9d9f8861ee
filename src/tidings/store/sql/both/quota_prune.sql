-- Forget a page of days long ago.
delete from tenant_days where (tenant, day) in (
  select tenant, day from tenant_days where day < cast(:before as bigint) / 86400000000 order by day limit :limit)
returning day
