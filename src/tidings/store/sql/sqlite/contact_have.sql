-- Which of these contacts there are.
-- Own file: a list goes in as JSON, which each database reads in its own way.
select c.id from json_each(:ids) w cross join contacts c where c.id = w.value and c.tenant = :tenant
