-- A role for metrics, a memory of configured keys, quotas of tenants, and an audit trail whose lines are chained by their
-- hashes.

-- A check cannot be altered, so the table is made again.
create table api_keys_new (
  id           text primary key,
  tenant       text not null,
  name         text not null,
  prefix       text not null unique,
  digest       text not null,
  old_digest   text,
  old_until    integer,
  role         text not null check (role in ('admin', 'operator', 'sender', 'viewer', 'metrics')),
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
insert into api_keys_new (id, tenant, name, prefix, digest, old_digest, old_until, role, scopes, rate, free_at, created_at,
  created_by, expires_at, rotated_at, revoked_at, last_used_at)
select id, tenant, name, prefix, digest, old_digest, old_until, role, scopes, rate, free_at, created_at, created_by,
  expires_at, rotated_at, revoked_at, last_used_at from api_keys;
drop table api_keys;
alter table api_keys_new rename to api_keys;
create unique index api_keys_name on api_keys (tenant, name) where revoked_at is null;
create index api_keys_newest on api_keys (tenant, id);
create index api_keys_admin on api_keys (id) where role = 'admin' and tenant = 'default' and revoked_at is null;

-- One row as soon as the settings have had a key: no-key mode stays closed when they have none any more.
create table configured_keys (
  id    integer primary key check (id = 1),
  since integer not null
) strict;

-- `hash` is the SHA-256 of the line's content and of the hash before it; lines from before this migration have none.
alter table audit add column hash text;

-- One row: the chain begins behind `base_n` (what was there before is pruned, or older than the chain) and ends at `n`.
create table audit_chain (
  id        integer primary key check (id = 1),
  base_n    integer not null,
  base_hash text not null,
  base_at   integer,
  n         integer not null,
  hash      text not null
) strict;

create trigger audit_chained after insert on audit when new.hash is not null
begin
  insert into audit_chain (id, base_n, base_hash, n, hash) values (1, new.n - 1, '', new.n, new.hash)
  on conflict (id) do update set n = excluded.n, hash = excluded.hash;
end;

-- Lines are deleted by retention only, which moves the beginning of the chain first.
create trigger audit_kept before delete on audit when exists (select 1 from audit_chain where old.n > base_n)
begin
  select raise(abort, 'the audit trail is append-only');
end;

-- How many messages a tenant with a quota has had accepted, by day (UTC).
create table tenant_days (
  tenant text not null,
  day    integer not null,
  n      integer not null,
  primary key (tenant, day)
) strict;
