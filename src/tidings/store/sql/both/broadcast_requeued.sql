-- Nothing of the broadcast is deferred any more.
update broadcasts set paused_at = null where group_id = :group_id and state = 'running'
