-- When any of the newest nodes, gone ones included, was last seen; null when nobody ever worked.
select max(seen_at) as seen_at from (select seen_at from nodes order by id desc limit 100) n
