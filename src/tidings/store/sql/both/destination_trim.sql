-- Forget destinations of a channel whose wait ended long ago, and all but the newest.
delete from destinations where queue = :queue and (
  until_at < coalesce(cast(:now as bigint), tidings_now()) - cast(:kept as bigint)
  or until_at < (select min(until_at) from
    (select until_at from destinations where queue = :queue order by until_at desc limit :most) newest))
