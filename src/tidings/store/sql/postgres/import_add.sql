-- Where these messages came from; import_check tells whether somebody else was quicker. Own file: JSON as rows.
insert into import_rows (source, key, import, message)
select :source, g.key, :run, g.message from json_to_recordset(:rows::json) g(key text, message text)
order by g.key collate "C"
on conflict do nothing
