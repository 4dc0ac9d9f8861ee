-- Delete a page of recipients of a group that was never frozen.
delete from messages where task in (
  select task from messages where group_id = :group_id and part is not null order by part, task limit :limit)
returning task
