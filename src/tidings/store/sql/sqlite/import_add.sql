-- Where these messages came from; import_check tells whether somebody else was quicker. Own file: JSON as rows.
insert into import_rows (source, key, import, message)
select :source, g.value ->> 'key', :run, g.value ->> 'message' from json_each(:rows) g where true
on conflict do nothing
