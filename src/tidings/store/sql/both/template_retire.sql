-- Take a template out of use; what was made of it stays.
update templates set retired_at = cast(:at as bigint), changed_at = cast(:at as bigint)
where id = :id and retired_at is null
returning id
