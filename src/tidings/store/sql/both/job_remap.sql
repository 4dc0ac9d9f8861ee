-- A repaired map; records keep what they were.
update jobs set definition = :definition, mapping_hash = :mapping_hash, version = version + 1,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where n = :n and version = :version
returning n
