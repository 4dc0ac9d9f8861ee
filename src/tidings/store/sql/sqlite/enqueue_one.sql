-- A new task. Own file: PostgreSQL takes them by COPY.
insert into tasks (id, tenant, queue, kind, priority, due_at, changed_at, ordering_key, first_due, head, expires_at, max_attempts)
values (:id, :tenant, :queue, :kind, :priority, :due_at, :now, :ordering_key, :first_due, :head, :expires_at, :max_attempts)
