-- Create rows for these provider ids where there are none. Own file: JSON as rows.
insert into receipts (channel, name, seen_at)
select g.value ->> 'channel', g.value ->> 'name', :now from json_each(:rows) g where true
on conflict (channel, name) do nothing
