-- The next state of a workflow. No row back: somebody else has changed it.
update workflows set topic = :topic, state = :state, version = version + 1, schema = :schema, asked = :asked, plan = :plan,
  changed_at = :changed_at, idle_at = :idle_at, closed_at = :closed_at, body = :body
where id = :id and version = :version returning id
