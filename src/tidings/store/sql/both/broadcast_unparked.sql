-- Nothing is parked any more.
update broadcasts set paused_at = null where lot = :lot and state = 'pending'
