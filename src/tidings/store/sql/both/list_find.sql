-- A list by its id or its name.
select id, name, filter, created_at from lists where id = :which and tenant = :tenant
union all
select id, name, filter, created_at from lists where tenant = :tenant and name = :which and id <> :which
limit 1
