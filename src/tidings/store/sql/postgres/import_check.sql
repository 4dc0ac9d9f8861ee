-- Returns a row if this run has recorded all these rows. Own file: JSON as rows.
select c.n from (
  select count(*) as n from json_to_recordset(:rows::json) g(key text)
  join import_rows r on r.source = :source and r.key = g.key collate "C" and r.import = :run) c where c.n = :n::bigint
