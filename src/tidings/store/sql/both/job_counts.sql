-- Records of a job that were quarantined or wait, by type and state.
select type, state, count(*) as n from job_records
where job = :job and fingerprint is not null and round = :round group by type, state
