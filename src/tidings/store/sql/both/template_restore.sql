-- Bring a retired template back.
update templates set retired_at = null, changed_at = :at
where id = :id and retired_at is not null
returning id
