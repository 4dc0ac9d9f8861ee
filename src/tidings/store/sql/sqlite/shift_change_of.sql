-- The changes that these keys made. Own file: a list goes in as JSON, which each database reads in its own way.
select c.id, c.key, c.day, c.squad, c.who, c.at, c.action, c.begins, c.ends, c.was, c.became
from json_each(:keys) g cross join shift_changes c where c.key = g.value
