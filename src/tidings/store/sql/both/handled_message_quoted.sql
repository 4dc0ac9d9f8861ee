-- The message that another one quotes, and the workflow it went into.
select i.text, t.workflow from inbox i left join handled_messages t on t.message = i.id
where i.source = :source and i.platform_id = :platform_id
