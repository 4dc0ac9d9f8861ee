-- Stop a schedule that cannot be understood any more, and say why.
update schedules set state = 'paused', next_at = null, problem = :problem, version = version + 1
where id = :id and version = :version
