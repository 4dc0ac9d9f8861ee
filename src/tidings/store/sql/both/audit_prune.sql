-- Forget a page of what was done long ago.
delete from audit where n in (select n from audit where at < :before order by at limit :limit)
returning n
