-- The contents of claimed tasks. Own file: a list goes in as an array in memory.
select task, id, tenant, channel, recipient, content, accepted_at from messages
where task in (select value from carray(:ids))
