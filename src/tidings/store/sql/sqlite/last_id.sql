-- The last id given out. Own file: PostgreSQL has a sequence.
select seq from sqlite_sequence where name = 'tasks'
