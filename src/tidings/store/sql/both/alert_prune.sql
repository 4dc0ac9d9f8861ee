-- Forget a page of what was over long ago.
delete from alerts where id in (
  select id from alerts where resolved_at is not null and resolved_at < :before order by resolved_at limit :limit)
returning id
