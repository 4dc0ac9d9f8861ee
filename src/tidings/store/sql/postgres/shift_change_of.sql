-- The changes that these keys made. Own file: a list goes in as JSON, which each database reads in its own way.
select c.id, c.key, c.day, c.squad, c.who, c.at, c.action, c.begins, c.ends, c.was, c.became
from json_array_elements_text(cast(:keys as json)) g
  cross join lateral (select * from shift_changes where key = g.value offset 0) c
