-- Every node that may still hold tasks.
select id, name, state, beat, started_at, seen_at, info, silent_for from nodes where state <> 'gone' order by id
