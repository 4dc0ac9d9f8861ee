-- Where the newest stands.
select coalesce(max(n), 0) as n from inbox
