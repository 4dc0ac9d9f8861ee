-- A run begins.
insert into imports (id, tenant, source, began_at) values (:id, :tenant, :source, coalesce(cast(:now as bigint), tidings_now()))
