-- A destination is left alone for a while.
insert into destinations (queue, tenant, host, failures, opened_at, until_at, reason)
values (:queue, :tenant, :host, :failures, :since, :until, :reason)
on conflict (queue, tenant, host) do update set failures = excluded.failures,
  until_at = case when excluded.until_at > destinations.until_at then excluded.until_at else destinations.until_at end, reason = excluded.reason
