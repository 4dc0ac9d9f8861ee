-- The contents of claimed tasks. Own file: arrays.
select task, id, tenant, channel, recipient, content, accepted_at from messages where task = any(:ids::bigint[])
