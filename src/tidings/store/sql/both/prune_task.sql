-- Forget a task that ended long ago.
delete from tasks where id = :id and state in ('done', 'cancelled', 'expired') and changed_at < :before
