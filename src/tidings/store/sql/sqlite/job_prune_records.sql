-- These records of a job that forgets. Own file: a list goes in as JSON, which each database reads in its own way.
delete from job_records where seq in (select g.value from json_each(:seqs) g)
  and exists (select 1 from jobs j where j.n = :job and j.pruning)
