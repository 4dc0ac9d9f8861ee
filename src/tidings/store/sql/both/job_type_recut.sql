-- Batches are cut from the first record on again.
update job_types set cut = 0, passed = -1, linked = false where job = :job
