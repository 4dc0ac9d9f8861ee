-- Where the chain of the audit trail begins and ends.
select base_n, base_hash, base_at, n, hash from audit_chain
