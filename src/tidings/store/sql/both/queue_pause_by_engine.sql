-- The engine stops a queue itself, until a person resumes it. A person's own pause stays what it is.
update queues set paused_by_engine = paused_by_engine or not paused, pause_reason = case when paused then pause_reason else :reason end, paused = true
where name = :name returning name
