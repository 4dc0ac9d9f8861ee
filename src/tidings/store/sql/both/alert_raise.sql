-- What has been wrong for long enough is raised. No row back: somebody else was faster.
update alerts set state = 'raised', raised_at = :at, last_at = :at, value = :value, problem = :problem, notify_error = :notify_error
where id = :id and state = 'pending' returning id
