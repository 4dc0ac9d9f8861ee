-- Forget a page of what was noted long ago.
delete from shadows where id in (select id from shadows where at < :before order by at limit :limit) returning id
