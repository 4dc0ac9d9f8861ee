-- Another address, other events, on or off; what is null stays. Turned on again, it starts with a clean slate.
update subscriptions set url = coalesce(cast(:url as text), url), events = coalesce(cast(:events as text), events),
  active = coalesce(cast(:active as boolean), active),
  failing_since = case when cast(:active as boolean) then null else failing_since end,
  problem = case when cast(:active as boolean) is null then problem end,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and tenant = :tenant
returning id
