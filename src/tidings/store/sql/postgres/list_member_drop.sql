-- Take contacts off a list.
-- Own file: a list goes in as JSON, which each database reads in its own way.
delete from list_members where ctid = any(array(
  select (select m.ctid from list_members m where m.list = :list and m.contact = w.id)
  from json_array_elements_text(cast(:ids as json)) as w(id)))
returning contact
