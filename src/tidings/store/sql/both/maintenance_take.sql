-- Whoever changes this row does the duty now; everybody else finds it taken.
update maintenance set due_at = coalesce(cast(:now as bigint), tidings_now()) + :every, node = :node
where name = :name and due_at <= coalesce(cast(:now as bigint), tidings_now())
returning name
