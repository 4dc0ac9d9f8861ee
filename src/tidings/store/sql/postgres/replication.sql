-- Who replicates from this server, as far as this role may see (`state` and `sync_state` of others are null without
-- pg_monitor). Own file: SQLite has no standbys.
select count(*) as standbys, count(*) filter (where sync_state is null) as hidden,
  count(*) filter (where sync_state in ('sync', 'quorum')) as synchronous,
  current_setting('synchronous_standby_names') as names, current_setting('synchronous_commit') as commits
from pg_stat_replication where state is distinct from 'backup'
