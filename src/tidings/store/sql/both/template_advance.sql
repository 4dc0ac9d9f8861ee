-- Count one version on. Whoever comes second waits here, so that each gets a number of its own.
update templates set version = version + 1, changed_at = :at
where id = :id and retired_at is null
returning version
