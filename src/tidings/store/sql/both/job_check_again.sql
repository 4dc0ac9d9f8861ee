-- When to look again, unless somebody wants it sooner.
update jobs set check_at = :check_at where n = :n and check_at = :leased
