-- Take a maintenance job: the node that updates the row runs it, others find it taken.
update maintenance set due_at = coalesce(cast(:now as bigint), tidings_now()) + :every, node = :node
where name = :name and due_at <= coalesce(cast(:now as bigint), tidings_now())
returning name
