-- Forget recipients whose wait is long over.
delete from recipient_rate_limits where next_at < :before
