-- A schedule was run by hand; its rule goes on as it was.
update schedules set last_at = :at, last_created = :created, problem = null, version = version + 1
where id = :id and version = :version
returning id
