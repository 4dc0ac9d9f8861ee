-- Ask a task at work to end as cancelled instead of being tried again.
update tasks set cancel_requested = true where id = :id and state = 'processing' returning id
