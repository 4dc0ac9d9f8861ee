-- A new template, unless its name is taken.
insert into templates (id, tenant, name, version, created_at, changed_at)
values (:id, :tenant, :name, 1, :at, :at)
on conflict (tenant, name) do nothing
returning id
