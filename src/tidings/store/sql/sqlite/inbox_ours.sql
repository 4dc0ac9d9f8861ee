-- Which of these are messages of our own. Own file: a list goes in as JSON, which each database reads in its own way.
select m.id from json_each(:ids) g cross join messages m where m.id = g.value
