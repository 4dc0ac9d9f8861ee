-- Stop starting anything on this queue, until a person resumes it.
update queues set paused = true, paused_by_engine = false, pause_reason = :reason where name = :name returning name
