-- What some days of the calendar say, one row for each day that says something.
-- Own file: a list goes in as JSON, which each database reads in its own way.
select g.value as day, l.lines from json_array_elements_text(cast(:days as json)) g
  cross join lateral (select cast(json_object_agg(squad, slots order by squad) as text) as lines from shift_lines
    where calendar = :calendar and day = g.value) l
where l.lines is not null
