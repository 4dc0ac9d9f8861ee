-- Delete a page of old receipts of unknown messages.
delete from receipts where (channel, name) in
  (select channel, name from receipts where task is null and seen_at < :before order by seen_at limit :limit)
returning name
