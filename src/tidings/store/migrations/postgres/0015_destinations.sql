-- Secrets of the engine itself, made when they are first needed.
create table secrets (
  name  text collate "C" primary key,
  value text not null
);

-- Destinations of a channel that are left alone for a while: their breaker is open, or they asked for it. No other
-- destination has a row.
create table destinations (
  queue     text collate "C" not null,
  tenant    text collate "C" not null,
  host      text collate "C" not null,
  failures  bigint not null,
  opened_at bigint not null,
  until_at  bigint not null,
  reason    text not null,
  primary key (queue, tenant, host)
);
create index destinations_old on destinations (queue, until_at);
