-- About to be sent: what the day says now and what it should say afterwards are kept first. Fenced by the claim.
update effects set state = 'claimed', claim_no = :claim_no, attempts = attempts + 1, pre = :pre, expected = :expected,
  evidence = evidence || cast(:line as text), claimed_at = coalesce(cast(:now as bigint), tidings_now())
where task = :task and state = :origin and claim_no <= :claim_no
  and exists (select 1 from tasks t where t.id = :task and t.state = 'processing' and t.claim_no = :claim_no)
returning task
