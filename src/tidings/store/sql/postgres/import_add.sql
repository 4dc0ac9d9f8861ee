-- Where these rows came from; import_check tells whether another run was first. Own file: JSON as rows.
insert into import_rows (source, key, import, kind, made, recipient, before, check_at)
select :source, g.key, :run, g.kind, g.made, g.recipient, g.before, :check_at::bigint
from json_to_recordset(:rows::json) g(key text, kind text, made text, recipient text, before text)
order by g.key collate "C" on conflict do nothing
