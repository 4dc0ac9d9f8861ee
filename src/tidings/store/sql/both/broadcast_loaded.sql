-- A chunk of recipients was taken in; only behind the one before, and only while nothing is frozen.
update broadcasts set lines = :lines, total = total + :added, duplicates = duplicates + :repeated,
  refused = refused + :refused, digest = :digest, check_at = case when check_at is null then null else cast(:check_at as bigint) end,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where group_id = :group_id and state = 'loading' and lines = :expected
returning group_id
