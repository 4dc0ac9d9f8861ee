-- Forget a key: what it began came to nothing.
delete from keys where scope = :scope and key = :key
