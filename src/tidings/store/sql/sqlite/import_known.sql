-- Which of these rows were taken before. Own file: a list comes as JSON.
select r.key from json_each(:keys) k cross join import_rows r on r.source = :source and r.key = k.value
