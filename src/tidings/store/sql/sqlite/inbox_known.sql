-- Which of these are here already. Own file: a list goes in as JSON, which each database reads in its own way.
select i.platform_id from json_each(:ids) g cross join inbox i where i.source = :source and i.platform_id = g.value
