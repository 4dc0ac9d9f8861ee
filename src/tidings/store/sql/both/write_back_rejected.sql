-- Rows that the other table rejected.
select key, problem from import_rows where source = :source and problem is not null order by key limit :limit
