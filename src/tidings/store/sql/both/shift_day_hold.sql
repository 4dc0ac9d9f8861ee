-- Hold one day of the calendar until the end of the transaction: one writer at a time.
insert into shift_days (calendar, day, made_at) values (:calendar, :day, coalesce(cast(:now as bigint), tidings_now()))
on conflict (calendar, day) do update set made_at = shift_days.made_at
returning day
