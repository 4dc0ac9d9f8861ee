-- Forget a broadcast of which nothing was ever sent; only as it was seen.
delete from broadcasts where group_id = :group_id and state = :expected and lines = :lines and frozen_at is null
returning group_id
