-- This queue has no session (any more).
update queues set link = null, link_why = null, link_since = null, link_told = null, link_tries = 0, lost_at = null,
  retry_at = null
where name = :name and link is not null
