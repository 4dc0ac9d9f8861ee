-- Save what was learned about a system; a concurrent change wins.
update job_systems set concurrency = :concurrency, failures = :failures, best = :best,
  blocked_until = case when blocked_until < :until then :until else blocked_until end,
  reason = case when blocked_until < :until then cast(:reason as text) else reason end, version = version + 1
where name = :name and version = :version
returning version
