-- How many records of a type were written without a link.
select count(*) as n from job_records where job = :job and type = :type and links
