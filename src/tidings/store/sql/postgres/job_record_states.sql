-- Where these records stand, and why. Own file: a list goes in as JSON, which each database reads in its own way.
select k.source_id, k.state, k.reason from json_array_elements_text(cast(:ids as json)) g
  cross join lateral (select source_id, state, reason from job_records
    where job = :job and type = :type and source_id = g.value and round = :round offset 0) k
