-- Records of a type that a job has written for the first time and that are still there, the last ones first.
select r.seq, r.source_id, r.state, r.key, r.target_id, r.attempts, r.before, r.raw from job_records r
where r.job = :job and r.type = :type and r.seq < :before and r.state in ('written', 'unchanged') and r.target_id is not null
  and r.round = :round and exists (select 1 from job_log l where l.record = r.seq and l.what = 'written')
order by r.seq desc limit :limit
