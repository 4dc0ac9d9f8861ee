-- Put contacts on a list; those that are on it stay. Own file: a list goes in as JSON, which each database reads in its own way.
insert into list_members (list, contact)
select l.id, c.id from json_array_elements_text(cast(:ids as json)) as w(id)
  join contacts c on c.id = w.id and c.tenant = :tenant
  join lists l on l.id = :list
on conflict do nothing returning contact
