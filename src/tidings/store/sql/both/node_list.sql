-- Every node that may still hold tasks.
select id, name, state, heartbeat, started_at, seen_at, info, silent_for from nodes where state <> 'gone' order by id
