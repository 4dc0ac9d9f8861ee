-- A case for a person; the same trouble again is counted.
insert into cases (id, tenant, reason, key, state, conversation, workflow, message, opened_at, deadline_at, changed_at, facts)
values (:id, :tenant, :reason, :key, 'open', :conversation, :workflow, :message, :at, :deadline_at, :at, :facts)
on conflict (tenant, key) where state <> 'closed' do update set times = cases.times + 1, changed_at = excluded.changed_at
returning id
