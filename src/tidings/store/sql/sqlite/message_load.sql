-- The contents of claimed tasks. Own file: a list goes in as JSON.
select task, id, tenant, channel, recipient, content, accepted_at from messages
where task in (select value from json_each(:ids))
