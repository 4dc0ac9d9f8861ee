-- Where these rows came from; import_check tells whether another run was first. Own file: JSON as rows.
insert into import_rows (source, key, import, kind, made, recipient, before, check_at)
select :source, g.value ->> 'key', :run, g.value ->> 'kind', g.value ->> 'made', g.value ->> 'recipient', g.value ->> 'before',
  :check_at
from json_each(:rows) g where true on conflict do nothing
