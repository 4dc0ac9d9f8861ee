-- Hold some days of the calendar until the end of the transaction, in one order everywhere: one writer of a day at a time.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into shift_days (calendar, day, made_at)
select :calendar, g.value, coalesce(cast(:now as bigint), tidings_now())
from json_array_elements_text(cast(:days as json)) g order by g.value collate "C"
on conflict (calendar, day) do update set made_at = shift_days.made_at
returning day
