-- What was done, newest first; of one tenant or of all.
select n, at, tenant, actor, key, action, target, origin, status, request, detail from audit
where n < :before and (cast(:tenant as text) is null or tenant = :tenant)
  and (cast(:actor as text) is null or actor = :actor) and (cast(:action as text) is null or action = :action)
order by n desc limit :limit
