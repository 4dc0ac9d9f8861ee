-- Forget a broadcast of which nothing was ever sent; only as it was seen.
delete from broadcasts where lot = :lot and state = :expected and lines = :lines and frozen_at is null
returning lot
