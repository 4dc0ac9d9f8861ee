-- What came in and how far each source was read; who may speak.

-- One row per source: its cursor, and the lock of whoever reads it. `token` is raised by each take-over and is the fence.
create table sources (
  name      text collate "C" primary key,
  kind      text not null,
  known_at  bigint not null,
  cursor    text,
  token     bigint not null default 0,
  holder    text,
  began_at  bigint,
  until     bigint,
  due_at    bigint not null default 0,
  read_at   bigint,
  failures  integer not null default 0,
  problem   text,
  check ((holder is null) = (until is null)),
  check ((holder is null) = (began_at is null))
);

-- Nothing is deleted here. `task` handles it; without one it ended on arrival. `ended` stands when the end is certain,
-- also after its task was forgotten.
create table inbox (
  n           bigint generated always as identity primary key,
  task        bigint unique,
  id          text collate "C" not null unique,
  tenant      text not null,
  source      text collate "C" not null,
  platform_id text collate "C" not null,
  conversation text collate "C" not null,
  chat        text not null,
  sender      text not null,
  name        text not null,
  kind        text not null check (kind in ('message', 'edit', 'delete', 'system')),
  original    text,
  reply_to    text,
  attachments integer not null default 0,
  said_at     bigint not null,
  received_at bigint not null,
  speaks_for  text,
  edited_at   bigint,
  deleted_at  bigint,
  ended       text check (ended in ('done', 'expired', 'skipped')),
  reason      text,
  text        text not null,
  edited_text text,
  raw         text,
  unique (source, platform_id)
);
create index inbox_conversation on inbox (conversation, n);
create index inbox_source on inbox (source, n);

-- Who may speak, by the platform's id of the sender; source '' means on every source.
create table roster (
  tenant     text not null,
  source     text collate "C" not null,
  sender     text collate "C" not null,
  name       text collate "C" not null,
  squad      text not null,
  role       text not null check (role in ('member', 'officer', 'admin')),
  changed_at bigint not null,
  primary key (tenant, sender, source)
);
create index roster_name on roster (tenant, name, sender, source);

-- Who was put on it and taken off, and who spoke for somebody else or wanted to.
create table roster_log (
  n      bigint generated always as identity primary key,
  at     bigint not null,
  tenant text not null,
  source text not null,
  sender text collate "C" not null,
  what   text not null check (what in ('added', 'changed', 'removed', 'spoke_for', 'refused')),
  detail text not null
);
create index roster_log_sender on roster_log (tenant, sender, n);
