-- Whether something is missing here that this node has seen committed on another server: its own row, the newest task it
-- created (0: none), its newest claim (task 0: none) or that claim's result; or whether a rewind of this server is unfinished.
select not exists (select 1 from nodes where id = :node and started_at = :started_at)
  or (cast(:newest as bigint) > 0 and not exists (select 1 from tasks where id = :newest))
  or (cast(:task as bigint) > 0 and not exists (
    select 1 from tasks where id = :task and (claim_no > :claim_no
      or (claim_no = :claim_no and (state <> 'processing' or node <> :node or not :settled)))))
  or exists (select 1 from rewinds where server = :server and finished_at is null) as lost
