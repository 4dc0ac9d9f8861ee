-- Lines of the audit trail, chained by their hashes. Own file: each database computes them in its own way.
select tidings_audit_add(cast(:rows as json), coalesce(cast(:now as bigint), tidings_now()))
