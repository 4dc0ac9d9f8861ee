-- Count imported rows.
update imports set taken = taken + :n where id = :run
