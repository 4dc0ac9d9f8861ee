-- A secret of the engine itself.
select value from secrets where name = :key
