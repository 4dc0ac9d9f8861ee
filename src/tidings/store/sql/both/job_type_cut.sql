-- A batch was cut; only from where the last one ended.
update job_types set cut = :last where job = :job and type = :type and cut = :seen
  and exists (select 1 from jobs j where j.n = :job and j.version = :version)
returning type
