-- Returns a row if this run has recorded all these rows. Own file: JSON as rows.
select c.n from (
  select count(*) as n from json_each(:rows) g cross join import_rows r
  on r.source = :source and r.key = g.value ->> 'key' and r.import = :run) c where c.n = :n
