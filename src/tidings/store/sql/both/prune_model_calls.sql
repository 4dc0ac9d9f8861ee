-- Forget a page of calls made long ago.
delete from model_calls where id in (select id from model_calls where at < :before order by at limit :limit)
returning id
