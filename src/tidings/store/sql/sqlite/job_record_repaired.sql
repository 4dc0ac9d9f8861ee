-- Save repaired records. Own file: a list as JSON, which each database reads differently.
select k.source_id, k.raw from json_each(:ids) g cross join job_records k
where k.job = :job and k.type = :type and k.source_id = g.value and k.original is not null
