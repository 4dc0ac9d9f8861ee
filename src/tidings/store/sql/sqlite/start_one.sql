-- Write down that this claim is about to act. Own file: run once per row.
update tasks set started_at = :now
where id = :id and state = 'processing' and node = :node and claim_no = :claim_no
returning id
