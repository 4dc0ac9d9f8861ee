-- Some days of the calendar.
select day, squad, slots, changed_at from shift_lines
where calendar = :calendar and day >= :first and day <= :last order by day, squad
