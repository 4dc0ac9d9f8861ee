-- A new workflow. No row back: the squad has one open about the same days.
insert into workflows (id, tenant, conversation, squad, topic, state, version, schema, asked, plan, opened_at, changed_at,
  idle_at, closed_at, body)
values (:id, :tenant, :conversation, :squad, :topic, :state, :version, :schema, :asked, :plan, :opened_at, :changed_at,
  :idle_at, :closed_at, :body)
on conflict do nothing returning id
