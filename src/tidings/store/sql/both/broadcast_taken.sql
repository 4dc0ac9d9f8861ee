-- So many more recipients are taken; only behind those before, and only while it runs.
update broadcasts set taken = taken + :n, paced_to = :paced_to, look_at = :look_at,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where lot = :lot and state = 'pending' and taken = :expected
returning lot
