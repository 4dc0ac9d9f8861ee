-- A chunk of recipients was taken in; only behind the one before, and only while nothing is frozen.
update broadcasts set lines = :lines, total = total + :added, duplicates = duplicates + :repeated,
  refused = refused + :refused, digest = :digest, look_at = case when look_at is null then null else cast(:look_at as bigint) end,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where lot = :lot and state = 'loading' and lines = :expected
returning lot
