-- Who may call, who is signed in, and what was done by whom.

-- A key's secret is never here: `digest` is the SHA-256 of its 256 random bits. After a rotation the one before is good
-- until `old_until`. `free_at` is the key's place in its rate: the instant from which it has nothing to its credit.
create table api_keys (
  id           text collate "C" primary key,
  tenant       text not null,
  name         text not null,
  prefix       text collate "C" not null unique,
  digest       text not null,
  old_digest   text,
  old_until    bigint,
  role         text not null check (role in ('admin', 'operator', 'sender', 'viewer')),
  scopes       text not null,
  rate         integer check (rate > 0),
  free_at      bigint not null default 0,
  created_at   bigint not null,
  created_by   text not null,
  expires_at   bigint,
  rotated_at   bigint,
  revoked_at   bigint,
  last_used_at bigint,
  check ((old_digest is null) = (old_until is null))
);
create unique index api_keys_name on api_keys (tenant, name) where revoked_at is null;
create index api_keys_newest on api_keys (tenant, id);
create index api_keys_admin on api_keys (id) where role = 'admin' and tenant = 'default' and revoked_at is null;

-- A browser that showed a key; `owner` is the key's id, or tells which key of the settings it was.
create table sessions (
  digest     text collate "C" primary key,
  owner      text collate "C" not null,
  created_at bigint not null,
  expires_at bigint not null,
  origin     text not null
);
create index sessions_expiry on sessions (expires_at);
create index sessions_owner on sessions (owner);

-- What was changed or tried, in the order in which it was written down. Append-only: lines are only ever forgotten by age.
create table audit (
  n       bigint generated always as identity primary key,
  at      bigint not null,
  tenant  text not null,
  who     text not null,
  key     text,
  what    text not null,
  target  text,
  origin  text,
  status  integer,
  request text,
  detail  text
);
create index audit_newest on audit (tenant, n);
create index audit_at on audit (at);
create function tidings_audit_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'the audit trail is append-only';
end $$;
create trigger audit_append_only before update on audit for each row execute function tidings_audit_append_only();
