-- The change that a key made.
select id, key, day, squad, who, at, action, begins, ends, was, became from shift_changes where key = :key
