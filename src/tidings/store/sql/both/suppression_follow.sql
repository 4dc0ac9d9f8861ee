-- The opt-outs of a person who changed the address, also for the new one.
insert into suppressions (tenant, address, channel, reason, at, evidence)
select tenant, :address, channel, reason, at, evidence from suppressions where tenant = :tenant and address = :former
on conflict do nothing
