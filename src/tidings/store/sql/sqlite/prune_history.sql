-- Forget a page of old history. Own file: PostgreSQL drops partitions.
delete from history where rowid in (select rowid from history where at < :before order by rowid limit 5000)
