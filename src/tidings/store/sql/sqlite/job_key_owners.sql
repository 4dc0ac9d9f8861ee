-- Who has these keys, the first of each first. Own file: a list goes in as JSON, which each database reads in its own way.
select k.key, k.seq, k.source_id from json_each(:keys) g cross join job_records k
where k.job = :job and k.type = :type and k.key = g.value and k.round = :round order by k.seq
