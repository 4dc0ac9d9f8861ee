-- Take the check of a session; another node may take it after :lease.
update queues set check_at = coalesce(cast(:now as bigint), tidings_now()) + :lease, check_no = check_no + 1
where name = :name and session_state is not null and check_at <= coalesce(cast(:now as bigint), tidings_now())
returning session_state, session_reason, session_since, reconnects, session_reported, lost_at, retry_at, was_down,
  restart_wanted, restarted_at, check_no
