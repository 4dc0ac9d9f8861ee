-- Write down a change with what was and what becomes; the same key again gives nothing. The day is held.
insert into shift_changes (key, calendar, day, squad, who, at, action, begins, ends, was, became)
select cast(:key as text), cast(:calendar as text), cast(:day as text), cast(:squad as text),
  coalesce((select e.who from effects e where e.key = :key), ''), coalesce(cast(:now as bigint), tidings_now()),
  cast(:action as text), cast(:begins as text), cast(:ends as text), d.slots,
  substr(d.slots, 1, cast(:first as integer)) || cast(:fill as text) || substr(d.slots, cast(:last as integer) + 1)
from (select coalesce((select l.slots from shift_lines l
        where l.calendar = :calendar and l.day = :day and l.squad = :squad), cast(:blank as text)) as slots) d
where not exists (select 1 from shift_changes c where c.key = :key)
returning id
