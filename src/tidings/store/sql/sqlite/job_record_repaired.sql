-- These records as they were mended. Own file: a list goes in as JSON, which each database reads in its own way.
select k.source_id, k.raw from json_each(:ids) g cross join job_records k
where k.job = :job and k.type = :type and k.source_id = g.value and k.original is not null
