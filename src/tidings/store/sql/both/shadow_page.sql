-- Both sides within a time, by recipient and then by time; goes on behind a place.
select id, side, recipient, digest, at, ref from shadows
where channel = :channel and at >= :since and at < :until
  and (recipient, at, id) > (:recipient, cast(:at as bigint), cast(:id as bigint))
order by recipient, at, id limit :limit
