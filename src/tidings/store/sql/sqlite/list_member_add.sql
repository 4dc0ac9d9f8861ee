-- Put contacts on a list; those that are on it stay.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into list_members (list, contact)
select l.id, c.id from json_each(:ids) w cross join contacts c cross join lists l
where c.id = w.value and c.tenant = :tenant and l.id = :list
on conflict do nothing returning contact
