-- Forget a page of sessions that are over.
delete from sessions where digest in (select digest from sessions where expires_at < :before order by expires_at limit :limit)
returning digest
