-- Make the calendar say what a change says.
insert into shift_lines (calendar, day, squad, slots, changed_at)
select calendar, day, squad, became, at from shift_changes where key = :key
on conflict (calendar, day, squad) do update set slots = excluded.slots, changed_at = excluded.changed_at
returning squad
