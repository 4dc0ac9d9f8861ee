-- Forget recipients whose wait is long over.
delete from paces where next_at < :before
