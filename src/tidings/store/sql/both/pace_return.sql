-- A turn that was not used: the recipient is free again, unless somebody has taken a later one.
update paces set next_at = :free where queue = :queue and key = :key and next_at = :taken
