-- The engine's tables: tasks and their history, queues, limits, nodes, tallies, keys, duties; and messages.
-- Times are whole microseconds since 1970 (UTC); tidings_now() is the one clock.

create function tidings_now() returns bigint language sql volatile as
$$ select (extract(epoch from clock_timestamp()) * 1000000)::bigint $$;

create sequence task_ids;

create table tasks (
  id           bigint primary key,
  due_at       bigint not null,
  changed_at   bigint not null,
  expires_at   bigint,
  first_due    bigint,
  started_at   bigint,
  node         bigint,
  claim_no     integer not null default 0,
  priority     smallint not null check (priority between 0 and 9),
  tries        smallint not null default 0 check (tries >= 0),
  throttles    smallint not null default 0,
  crashes      smallint not null default 0,
  max_tries    smallint check (max_tries > 0),
  head         boolean not null default true,
  unknown      boolean not null default false,
  cancel_asked boolean not null default false,
  state        text collate "C" not null default 'pending'
               check (state in ('pending', 'processing', 'done', 'failed', 'cancelled', 'expired')),
  tenant       text not null,
  queue        text collate "C" not null,
  kind         text not null,
  order_key    text collate "C",
  category     text check (category in ('temporary', 'permanent', 'throttling', 'validation', 'system')),
  check ((state = 'processing') = (node is not null)),
  check ((order_key is null) = (first_due is null)),
  check (head or order_key is not null)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);

-- What may be claimed: one range scan per queue and priority, never a future or waiting row.
create index tasks_due on tasks (queue, priority, due_at) where state = 'pending' and head;
-- The tasks that a node holds, for the reaper.
create index tasks_held on tasks (node) where state = 'processing';
-- The one task of an order key that is at work or may be claimed.
create unique index tasks_turn on tasks (queue, order_key)
  where order_key is not null and (state = 'processing' or (state = 'pending' and head));
-- The others of that key, in order.
create index tasks_line on tasks (queue, order_key, first_due, id) where order_key is not null and state = 'pending';
-- Dead letters and what expired. A range, because a list of states would be weighed on every move of the hot path.
create index tasks_ended on tasks (state, id) where state >= 'expired' and state <= 'failed';
create index tasks_stopped on tasks (queue, order_key) where order_key is not null and state = 'failed';

create table history (
  task     bigint not null,
  at       bigint not null,
  node     bigint,
  try      smallint not null,
  origin   text not null,
  state    text not null,
  category text,
  detail   text
) partition by range (at);
create index history_task on history (task);
create table history_rest partition of history default;

-- One partition a day, made ahead of time; a day whose rows already lie in the default partition stays there.
create function tidings_history_partitions(first_at bigint, days integer) returns integer language plpgsql as $$
declare
  made integer := 0;
  day bigint := 86400000000;
  start bigint;
  name text;
begin
  for i in 0 .. days loop
    start := (first_at / day + i) * day;
    name := 'history_' || to_char(to_timestamp(start / 1000000) at time zone 'UTC', 'YYYYMMDD');
    if to_regclass(quote_ident(name)) is null then
      begin
        execute format('create table %I partition of history for values from (%s) to (%s)', name, start, start + day);
        made := made + 1;
      exception when check_violation or duplicate_table then null;
      end;
    end if;
  end loop;
  return made;
end $$;

create function tidings_history_drop(before_at bigint) returns integer language plpgsql as $$
declare
  dropped integer := 0;
  part record;
begin
  for part in
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'history'::regclass and c.relname ~ '^history_[0-9]{8}$'
  loop
    if extract(epoch from to_timestamp(substr(part.name, 9), 'YYYYMMDD')) * 1000000 + 86400000000 <= before_at then
      execute format('drop table %I', part.name);
      dropped := dropped + 1;
    end if;
  end loop;
  return dropped;
end $$;

create table queues (
  name            text collate "C" primary key,
  paused          boolean not null default false,
  pause_reason    text,
  parked_until    bigint,
  park_reason     text,
  failures        integer not null default 0,
  opened_at       bigint,
  probe_at        bigint,
  on_unknown      text not null default 'resend' check (on_unknown in ('resend', 'ask', 'hold')),
  deadline        bigint not null default 30000000,
  stop_on_failure boolean not null default false
);

create table limits (
  queue    text collate "C" primary key,
  interval bigint not null check (interval > 0),
  next_at  bigint not null default 0
);

create table paces (
  queue   text collate "C" not null,
  key     text collate "C" not null,
  next_at bigint not null,
  primary key (queue, key)
);
create index paces_old on paces (next_at);

create table nodes (
  id         bigint generated always as identity primary key,
  name       text not null,
  state      text not null default 'live' check (state in ('live', 'dead', 'gone')),
  beat       bigint not null default 0,
  started_at bigint not null,
  seen_at    bigint not null,
  info       text not null default '{}'
);
create index nodes_live on nodes (state) where state <> 'gone';

create table tallies (
  at     bigint not null,
  n      bigint not null,
  ms     bigint not null,
  packed boolean not null default false,
  queue  text not null,
  what   text not null
);
create index tallies_at on tallies (at);
create index tallies_loose on tallies (at) where not packed;

create table keys (
  scope      text collate "C" not null,
  key        text collate "C" not null,
  digest     text not null,
  answer     text not null,
  expires_at bigint not null,
  primary key (scope, key)
);
create index keys_old on keys (expires_at);

create table duties (
  name   text primary key,
  due_at bigint not null default 0,
  node   bigint
);

create table messages (
  task         bigint primary key,
  accepted_at  bigint not null,
  scheduled_at bigint not null,
  id           text collate "C" not null,
  tenant       text not null,
  channel      text not null,
  recipient    text not null,
  content      text not null
);
create unique index messages_id on messages (id);
create index messages_recipient on messages (tenant, recipient, task);
