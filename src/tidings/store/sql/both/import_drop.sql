-- This row may be imported again.
delete from import_rows where source = :source and key = :key
