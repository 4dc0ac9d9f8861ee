-- One broadcast by its public id.
select * from broadcasts where id = :id and tenant = :tenant
