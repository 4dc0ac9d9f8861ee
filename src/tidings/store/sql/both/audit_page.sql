-- What was done, newest first; of one tenant or of all.
select n, at, tenant, who, key, what, target, origin, status, request, detail from audit
where n < :before and (cast(:tenant as text) is null or tenant = :tenant)
  and (cast(:who as text) is null or who = :who) and (cast(:what as text) is null or what = :what)
order by n desc limit :limit
