-- Which of these this round has already, as the source gave them. Own file: a list goes in as JSON, which each database reads in its own way.
select k.source_id, k.raw from json_array_elements_text(cast(:ids as json)) g
  cross join lateral (select source_id, nullif(coalesce(original, raw), '') as raw from job_records
    where job = :job and type = :type and source_id = g.value and round = :round offset 0) k
