-- Forget a page of what was told long ago of messages that are not ours.
delete from receipts where (channel, name) in
  (select channel, name from receipts where task is null and seen_at < :before order by seen_at limit :limit)
returning name
