-- Batches of a job that forgets.
delete from job_batches where id in (
  select b.id from jobs j cross join job_batches b where j.n = :job and j.pruning and b.job = j.n limit :limit)
returning id
