-- A new key; gives nothing back where its name is in use.
insert into api_keys (id, tenant, name, prefix, digest, role, scopes, rate, created_at, created_by, expires_at)
values (:id, :tenant, :name, :prefix, :digest, :role, :scopes, cast(:rate as integer),
  coalesce(cast(:now as bigint), tidings_now()), :created_by, cast(:expires_at as bigint))
on conflict do nothing
returning id
