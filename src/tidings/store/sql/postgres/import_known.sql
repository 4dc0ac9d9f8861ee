-- Which of these rows were imported before. Own file: a list as JSON.
select r.key from json_array_elements_text(:keys::json) k(key)
join import_rows r on r.source = :source and r.key = k.key collate "C"
