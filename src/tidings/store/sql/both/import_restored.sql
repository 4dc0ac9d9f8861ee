-- The other table has the old status again, so the row may be imported again.
delete from import_rows where source = :source and key = :key and version = :version
