-- It changed while an older state was being written: write it again.
update import_rows set written = null, check_at = coalesce(cast(:now as bigint), tidings_now()), version = version + 1
where source = :source and key = :key and version <> :version
