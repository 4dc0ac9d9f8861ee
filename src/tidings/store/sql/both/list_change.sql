-- Another name or filter for a list; gives nothing back if the name is another list's.
update lists set name = :name, filter = :filter
where id = :id and tenant = :tenant
  and not exists (select 1 from lists o where o.tenant = :tenant and o.name = :name and o.id <> :id)
returning id
