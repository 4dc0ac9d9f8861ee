-- Which of these are messages of our own. Own file: a list goes in as JSON, which each database reads in its own way.
select m.id from json_array_elements_text(cast(:ids as json)) g
  cross join lateral (select id from messages where id = g.value offset 0) m
