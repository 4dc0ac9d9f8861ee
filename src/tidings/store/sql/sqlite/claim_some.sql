-- Claim these tasks. Own file: a list goes in as an array in memory.
update tasks set state = 'processing', node = :node, claim_no = claim_no + 1, attempts = attempts + 1, started_at = null,
  changed_at = :now
where id in (select value from carray(:ids)) and state = 'pending'
