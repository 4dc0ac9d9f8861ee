-- End what waits. Own file: lot_end_tell has written its history.
update tasks set state = :state, cancel_asked = cancel_asked or :asked, changed_at = coalesce(:now, tidings_now())
where lot = :lot and state = 'pending' and id > :after and id <= :upto
