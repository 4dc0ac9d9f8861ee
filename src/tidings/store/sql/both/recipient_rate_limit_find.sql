-- When the next start towards one recipient may be.
select next_at from recipient_rate_limits where queue = :queue and key = :key
