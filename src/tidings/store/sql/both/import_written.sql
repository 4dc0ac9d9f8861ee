-- The other table has this state.
update import_rows set written = :written, check_at = :check_at, problem = :problem
where source = :source and key = :key and version = :version
