-- Ids up to this one are given out. Own file: PostgreSQL has a sequence.
insert or replace into sqlite_sequence (rowid, name, seq)
values ((select rowid from sqlite_sequence where name = 'tasks'), 'tasks', :last)
