-- Dead nodes that still hold tasks: a claim of theirs was committed after they were declared dead.
select n.id, n.name, n.state, n.heartbeat, n.started_at, n.seen_at, n.info from nodes n
where n.state = 'gone' and n.seen_at > coalesce(cast(:now as bigint), tidings_now()) - 86400000000
  and exists (select 1 from tasks t where t.node = n.id and t.state = 'processing')
order by n.id
