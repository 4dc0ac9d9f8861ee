-- When messages go out that stand behind another of their order key, between two instants; among a bounded number.
select w.due_at from (
  select due_at, head, tenant, kind from tasks where ordering_key is not null and state = 'pending' limit :window) w
where not w.head and w.due_at >= :since and w.due_at < :until and w.tenant = :tenant and w.kind = :kind
