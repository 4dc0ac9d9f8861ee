-- All that happened to one task, in order.
select task, at, origin, state, try, node, category, detail from history where task = :task order by at, state = 'processing' desc
