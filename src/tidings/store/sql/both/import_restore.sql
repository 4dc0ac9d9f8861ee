-- The write-back gives this row its old status back and then forgets it.
update import_rows set undone = true, check_at = coalesce(cast(:now as bigint), tidings_now()), version = version + 1
where source = :source and key = :key
