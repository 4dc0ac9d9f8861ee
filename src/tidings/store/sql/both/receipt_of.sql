-- All receipts of one message, part by part.
select name, last, delivered_at, read_at, undelivered_at, reason, category from receipts
where task = :task order by seen_at, last, name
