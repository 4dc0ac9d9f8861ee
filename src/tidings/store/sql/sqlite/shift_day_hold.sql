-- Hold some days of the calendar until the end of the transaction: one writer of a day at a time.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into shift_days (calendar, day, made_at)
select :calendar, g.value, coalesce(cast(:now as bigint), tidings_now()) from json_each(:days) g where true
on conflict (calendar, day) do update set made_at = shift_days.made_at
returning day
