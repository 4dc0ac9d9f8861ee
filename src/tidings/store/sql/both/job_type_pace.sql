-- Microseconds per record of a batch over all its attempts, averaged with those of earlier batches.
update job_types set pace = (select (coalesce(job_types.pace, b.spent / b.size) + b.spent / b.size) / 2
  from job_batches b where b.id = :batch)
where job = :job and type = :type
