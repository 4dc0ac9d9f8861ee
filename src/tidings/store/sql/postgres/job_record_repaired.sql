-- Save repaired records. Own file: a list as JSON, which each database reads differently.
select k.source_id, k.raw from json_array_elements_text(cast(:ids as json)) g
  cross join lateral (select source_id, raw from job_records
    where job = :job and type = :type and source_id = g.value and original is not null offset 0) k
