-- A role for metrics, a memory of configured keys, quotas of tenants, and an audit trail whose lines are chained by their
-- hashes.

alter table api_keys drop constraint api_keys_role_check;
alter table api_keys add check (role in ('admin', 'operator', 'sender', 'viewer', 'metrics'));

-- One row as soon as the settings have had a key: no-key mode stays closed when they have none any more.
create table configured_keys (
  id    integer primary key check (id = 1),
  since bigint not null
);

-- `hash` is the SHA-256 of the line's content and of the hash before it; lines from before this migration have none.
alter table audit add column hash text;

-- One row: the chain begins behind `base_n` (what was there before is pruned, or older than the chain) and ends at `n`.
create table audit_chain (
  id        integer primary key check (id = 1),
  base_n    bigint not null,
  base_hash text not null,
  base_at   bigint,
  n         bigint not null,
  hash      text not null
);

-- Appends lines, each with the hash of its content in `digest`. The row of the chain is locked until the end of the
-- transaction, so concurrent writers form one chain without gaps.
create function tidings_audit_add(lines json, instant bigint) returns void language plpgsql as $$
declare
  last audit_chain;
  line record;
begin
  insert into audit_chain (id, base_n, base_hash, n, hash)
    select 1, coalesce(max(a.n), 0), '', coalesce(max(a.n), 0), '' from audit a on conflict do nothing;
  select * into last from audit_chain where id = 1 for update;
  for line in select * from json_to_recordset(lines) as r(tenant text, who text, key text, what text, target text,
      origin text, status integer, request text, detail text, digest text) loop
    last.n := last.n + 1;
    last.hash := encode(sha256(convert_to(concat_ws('|', last.hash, last.n, instant, line.digest), 'UTF8')), 'hex');
    insert into audit (n, at, tenant, who, key, what, target, origin, status, request, detail, hash)
      overriding system value
      values (last.n, instant, line.tenant, line.who, line.key, line.what, line.target, line.origin, line.status,
        line.request, line.detail, last.hash);
  end loop;
  update audit_chain set n = last.n, hash = last.hash where id = 1;
end $$;

-- Lines are deleted by retention only, which moves the beginning of the chain first.
create function tidings_audit_kept() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    if not exists (select 1 from audit_chain where old.n > base_n) then
      return old;
    end if;
  end if;
  raise exception 'the audit trail is append-only';
end $$;
create trigger audit_kept before delete on audit for each row execute function tidings_audit_kept();
create trigger audit_not_truncated before truncate on audit for each statement execute function tidings_audit_kept();

-- How many messages a tenant with a quota has had accepted, by day (UTC).
create table tenant_days (
  tenant text not null,
  day    bigint not null,
  n      bigint not null,
  primary key (tenant, day)
);
