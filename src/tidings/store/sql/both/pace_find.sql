-- When the next start towards one recipient may be.
select next_at from paces where queue = :queue and key = :key
