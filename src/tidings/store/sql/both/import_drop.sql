-- This row may be taken again.
delete from import_rows where source = :source and key = :key
