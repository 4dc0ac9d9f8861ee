-- The case of a trouble that is not closed.
select id from cases where tenant = :tenant and key = :key and state <> 'closed'
