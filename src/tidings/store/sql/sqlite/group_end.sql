-- End what waits. Own file: lot_end_tell has written its history.
update tasks set state = :state, cancel_requested = cancel_requested or :asked, changed_at = coalesce(:now, tidings_now())
where group_id = :group_id and state = 'pending' and id > :after and id <= :upto
