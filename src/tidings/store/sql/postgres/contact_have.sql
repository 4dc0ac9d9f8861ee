-- Which of these contacts there are. Own file: a list goes in as JSON, which each database reads in its own way.
select c.id from json_array_elements_text(cast(:ids as json)) as w(id)
  join contacts c on c.id = w.id and c.tenant = :tenant
