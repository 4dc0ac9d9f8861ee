-- Who has these keys, the first of each first. Own file: a list goes in as JSON, which each database reads in its own way.
select k.key, k.seq, k.source_id from json_array_elements_text(cast(:keys as json)) g
  cross join lateral (select key, seq, source_id from job_records
    where job = :job and type = :type and key = g.value and round = :round offset 0) k order by k.seq
