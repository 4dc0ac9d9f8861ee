-- Ask what is at work to end as cancelled instead of being tried again.
update tasks set cancel_asked = true where lot = :lot and state = 'processing' and node is not null and not cancel_asked
