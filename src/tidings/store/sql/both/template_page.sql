-- Templates by name; with :gone also retired ones.
select id, name, version, created_at, changed_at, retired_at from templates
where tenant = :tenant and name > :after and (cast(:gone as integer) = 1 or retired_at is null)
order by name limit :limit
