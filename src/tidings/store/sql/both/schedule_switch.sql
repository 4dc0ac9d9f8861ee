-- Pause, resume or end a schedule, if nobody else has changed it since it was read.
update schedules set state = :state, next_at = :next_at, held_at = null, version = version + 1, changed_at = :at
where id = :id and tenant = :tenant and version = :version
returning id
