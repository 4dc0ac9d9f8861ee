-- A turn that was moved, or not used: the recipient is free at :free, unless somebody has taken a later one.
update recipient_rate_limits set next_at = :free where queue = :queue and key = :key and next_at = :taken
