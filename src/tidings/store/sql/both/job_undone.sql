-- How many records of a job were deleted from the target by an undo.
select count(*) as n from job_records where job = :job and fingerprint >= 'undone/' and fingerprint < 'undone0'
