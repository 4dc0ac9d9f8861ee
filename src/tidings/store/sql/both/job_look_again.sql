-- When to look again, unless somebody wants it sooner.
update jobs set look_at = :look_at where n = :n and look_at = :leased
