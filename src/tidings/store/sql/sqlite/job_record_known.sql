-- Which of these this round has already, as the source gave them. Own file: a list goes in as JSON, which each database reads in its own way.
select k.source_id, nullif(coalesce(k.original, k.raw), '') as raw from json_each(:ids) g cross join job_records k
where k.job = :job and k.type = :type and k.source_id = g.value and k.round = :round
