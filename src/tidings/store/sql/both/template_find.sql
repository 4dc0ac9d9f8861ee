-- One template, by its id or by its name.
select id, name, version, created_at, changed_at, retired_at from templates
where id = :place and tenant = :tenant
union all
select id, name, version, created_at, changed_at, retired_at from templates
where tenant = :tenant and name = :place and id <> :place
limit 1
