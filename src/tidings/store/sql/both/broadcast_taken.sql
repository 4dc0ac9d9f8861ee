-- So many more recipients are taken; only behind those before, and only while it runs.
update broadcasts set taken = taken + :n, paced_to = :paced_to, check_at = :check_at,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where group_id = :group_id and state = 'running' and taken = :expected
returning group_id
