-- Who may call, who is signed in, and what was done by whom.

-- A key's secret is never here: `digest` is the SHA-256 of its 256 random bits. After a rotation the one before is good
-- until `old_until`. `free_at` is the key's place in its rate: the instant from which it has nothing to its credit.
create table api_keys (
  id           text primary key,
  tenant       text not null,
  name         text not null,
  prefix       text not null unique,
  digest       text not null,
  old_digest   text,
  old_until    integer,
  role         text not null check (role in ('admin', 'operator', 'sender', 'viewer')),
  scopes       text not null,
  rate         integer check (rate > 0),
  free_at      integer not null default 0,
  created_at   integer not null,
  created_by   text not null,
  expires_at   integer,
  rotated_at   integer,
  revoked_at   integer,
  last_used_at integer,
  check ((old_digest is null) = (old_until is null))
) strict;
create unique index api_keys_name on api_keys (tenant, name) where revoked_at is null;
create index api_keys_newest on api_keys (tenant, id);
create index api_keys_admin on api_keys (id) where role = 'admin' and tenant = 'default' and revoked_at is null;

-- A browser that showed a key; `owner` is the key's id, or tells which key of the settings it was.
create table sessions (
  digest     text primary key,
  owner      text not null,
  created_at integer not null,
  expires_at integer not null,
  origin     text not null
) strict;
create index sessions_expiry on sessions (expires_at);
create index sessions_owner on sessions (owner);

-- What was changed or tried, in the order in which it was written down. Append-only: lines are only ever forgotten by age.
create table audit (
  n       integer primary key autoincrement,
  at      integer not null,
  tenant  text not null,
  who     text not null,
  key     text,
  what    text not null,
  target  text,
  origin  text,
  status  integer,
  request text,
  detail  text
) strict;
create index audit_newest on audit (tenant, n);
create index audit_at on audit (at);
create trigger audit_append_only before update on audit
begin
  select raise(abort, 'the audit trail is append-only');
end;
