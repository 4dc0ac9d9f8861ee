-- Which of these contacts there are.
-- Own file: a list goes in as JSON, which each database reads in its own way.
-- Looked up one by one (`offset 0`), because a plan made on an empty table would walk through all of them later.
select c.id from json_array_elements_text(cast(:ids as json)) as w(id)
  cross join lateral (select c.id from contacts c where c.id = w.id and c.tenant = :tenant offset 0) c
