-- On which channels an address has opted out; '' is every channel.
select address, channel, reason, at, evidence from suppressions
where tenant = :tenant and address = :address order by channel limit 1000
