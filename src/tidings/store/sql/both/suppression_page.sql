-- Who has opted out, by address, from a place on.
select address, channel, reason, at, evidence from suppressions
where tenant = :tenant and (address, channel) > (:address, :channel) order by address, channel limit :limit
