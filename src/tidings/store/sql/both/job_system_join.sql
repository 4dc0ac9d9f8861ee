-- A system, and what it bears according to its documents and the job.
insert into job_systems (name, step, most, concurrency) values (:name, :step, :most, :begin)
on conflict (name) do update set step = excluded.step, most = excluded.most
