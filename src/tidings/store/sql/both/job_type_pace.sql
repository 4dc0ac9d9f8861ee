-- Microseconds per record, as measured; an average that forgets.
update job_types set pace = (coalesce(pace, cast(:pace as bigint)) + cast(:pace as bigint)) / 2 where job = :job
  and type = :type
