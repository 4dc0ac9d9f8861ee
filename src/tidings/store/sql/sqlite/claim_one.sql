-- Claim one task. Own file: run once per row inside the writer's transaction.
update tasks set state = 'processing', node = :node, claim_no = claim_no + 1, tries = tries + 1, started_at = null,
  changed_at = :now
where id = :id and state = 'pending'
