-- A new list; gives nothing back if the name is taken.
insert into lists (id, tenant, name, filter, created_at) values (:id, :tenant, :name, :filter, :created_at)
on conflict do nothing returning id
