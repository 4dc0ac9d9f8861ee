-- Put contacts on a list; those that are on it stay.
-- Own file: a list goes in as JSON, which each database reads in its own way.
-- Looked up one by one (`offset 0`), because a plan made on an empty table would walk through all of them later.
insert into list_members (list, contact)
select l.id, c.id from (select l.id from lists l where l.id = :list offset 0) l
  cross join json_array_elements_text(cast(:ids as json)) as w(id)
  cross join lateral (select c.id from contacts c where c.id = w.id and c.tenant = :tenant offset 0) c
on conflict do nothing returning contact
