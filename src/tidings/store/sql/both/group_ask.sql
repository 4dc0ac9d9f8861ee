-- Ask what is at work to end as cancelled instead of being tried again.
update tasks set cancel_requested = true where group_id = :group_id and state = 'processing' and node is not null and not cancel_requested
