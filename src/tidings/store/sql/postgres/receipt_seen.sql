-- Create rows for these provider ids where there are none. Own file: JSON as rows.
insert into receipts (channel, name, seen_at)
select g.channel, g.name, coalesce(:now::bigint, tidings_now())
from json_to_recordset(:rows::json) g(channel text, name text)
order by g.channel, g.name
on conflict (channel, name) do nothing
