-- Log who repaired a record.
insert into job_log (record, at, what, reason)
select seq, coalesce(cast(:now as bigint), tidings_now()), 'repaired', cast(:who as text) from job_records
where job = :job and type = :type and source_id = :source_id
