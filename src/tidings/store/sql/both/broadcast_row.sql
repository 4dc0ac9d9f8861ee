-- One broadcast by its lot.
select * from broadcasts where lot = :lot
