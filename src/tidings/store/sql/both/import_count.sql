-- So many more were taken.
update imports set taken = taken + :n where id = :run
