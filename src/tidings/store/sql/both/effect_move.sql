-- New state with its evidence, fenced by the claim; `over`: final, and an event follows.
update effects set state = :state, claim_no = :claim_no, evidence = evidence || cast(:line as text),
  ended_at = case when cast(:over as boolean) then coalesce(cast(:now as bigint), tidings_now()) end,
  reported = cast(:over as boolean)
where task = :task and state = :origin and claim_no <= :claim_no
  and exists (select 1 from tasks t where t.id = :task and t.state = 'processing' and t.claim_no = :claim_no)
returning task
