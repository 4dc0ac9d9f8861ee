-- How many batches of a round are in which state, and what ended in them.
select b.state, count(*) as n from job_batches b where b.job = :job and b.round = :round group by b.state
