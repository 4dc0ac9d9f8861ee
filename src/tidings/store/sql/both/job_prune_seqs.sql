-- Records of a job being pruned: in order, reopened in a batch, or repaired and never reopened.
select r.seq from jobs j cross join job_records r where j.n = :job and j.pruning and r.job = j.n and r.batch is null
union all
select r.seq from jobs j cross join job_batches b cross join job_records r
where j.n = :job and j.pruning and b.job = j.n and r.batch = b.id
union all
select r.seq from jobs j cross join job_records r where j.n = :job and j.pruning and r.job = j.n and r.fingerprint is not null
limit :limit
