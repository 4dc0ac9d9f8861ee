-- Secrets of the engine itself, made when they are first needed.
create table secrets (
  name  text primary key,
  value text not null
) strict;

-- Destinations of a channel that are left alone for a while: their breaker is open, or they asked for it. No other
-- destination has a row.
create table destinations (
  queue     text not null,
  tenant    text not null,
  host      text not null,
  failures  integer not null,
  opened_at integer not null,
  until_at  integer not null,
  reason    text not null,
  primary key (queue, tenant, host)
) strict;
create index destinations_old on destinations (queue, until_at);
