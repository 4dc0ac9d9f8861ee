-- Lines of the audit trail in the order in which they are chained.
select n, at, tenant, actor, key, action, target, origin, status, request, detail, hash from audit
where n > :after and n <= :last order by n limit :limit
