-- Next version number of a template; concurrent writers wait here, so numbers are unique.
update templates set version = version + 1, changed_at = :at
where id = :id and retired_at is null
returning version
