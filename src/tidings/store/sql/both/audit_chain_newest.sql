-- The newest line of the audit trail: whether it is part of a chain.
select n, hash from audit order by n desc limit 1
