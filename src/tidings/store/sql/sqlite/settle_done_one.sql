-- The common case of settle: done, nothing to add. Own file: run once per row.
update tasks set state = 'done', category = null, node = null, changed_at = :now
where id = :id and state = 'processing' and node = :node and claim_no = :claim_no
