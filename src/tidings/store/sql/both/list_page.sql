-- Lists by name, from a place on.
select id, name, filter, created_at from lists where tenant = :tenant and name > :after order by name limit :limit
