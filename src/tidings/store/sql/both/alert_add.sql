-- A new alert, pending or raised at once. No row back: there is one of this rule and subject.
insert into alerts (id, tenant, rule, subject, severity, state, value, problem, first_at, last_at, raised_at, notify_error)
values (:id, :tenant, :rule, :subject, :severity, :state, :value, :problem, :at, :at, :raised_at, :notify_error)
on conflict (rule, subject) where resolved_at is null do nothing
returning id
