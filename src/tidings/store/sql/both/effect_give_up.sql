-- Nobody works on it any more: not sent is refused, perhaps sent is unknown.
update effects set state = case when state in ('planned', 'not_applied') then 'refused' else 'unknown' end,
  evidence = evidence || cast(:line as text), ended_at = coalesce(cast(:now as bigint), tidings_now()), reported = true
where task = :task and not reported
  and not exists (select 1 from tasks t where t.id = :task and t.state in ('pending', 'processing'))
returning task
