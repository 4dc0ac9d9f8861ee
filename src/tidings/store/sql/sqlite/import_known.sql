-- Which of these rows were imported before. Own file: a list as JSON.
select r.key from json_each(:keys) k cross join import_rows r on r.source = :source and r.key = k.value
