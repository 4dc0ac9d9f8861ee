-- These records of a job that forgets. Own file: a list goes in as JSON, which each database reads in its own way.
delete from job_records where seq = any(array(select cast(g.value as bigint) from json_array_elements_text(cast(:seqs as json)) g))
  and exists (select 1 from jobs j where j.n = :job and j.pruning)
