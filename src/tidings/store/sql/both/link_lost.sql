-- A send has met that the session is gone. A result of a claim made before it last came back says nothing new.
update queues set link = :link, link_why = :why, lost_at = coalesce(lost_at, cast(:now as bigint), tidings_now()),
  link_since = coalesce(cast(:now as bigint), tidings_now()), retry_at = null, look_at = 0, look_no = look_no + 1
where name = :name and link_since <= :claimed_at
  and (link = 'connected' or (link = 'reconnecting' and cast(:link as text) = 'logged_out'))
returning name
