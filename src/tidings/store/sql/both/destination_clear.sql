-- A person lets a channel send again: none of its destinations is left alone.
delete from destinations where queue = :name
