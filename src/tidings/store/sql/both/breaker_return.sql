-- A granted probe found nothing to send.
update queues set probe_at = null where name = :name and probe_at is not null
