-- Receipts: what providers tell later of a message that they took, found by the name that they gave it.

-- A row may come before its message is known to have been sent: `task` is then still empty. Of a text that was sent in
-- parts, the last one decides. `open` says that its message was at work when the proof of its sending came.
create table receipts (
  channel        text not null,
  name           text not null,
  task           integer,
  last           integer not null default true,
  open           integer not null default false,
  seen_at        integer not null,
  delivered_at   integer,
  read_at        integer,
  undelivered_at integer,
  reason         text,
  category       text check (category in ('temporary', 'permanent', 'throttling', 'validation', 'system')),
  primary key (channel, name),
  check (read_at is null or delivered_at is not null)
) strict;
create index receipts_task on receipts (task) where task is not null;
-- What nobody knows, to be forgotten; and what is still to be proved.
create index receipts_strange on receipts (seen_at) where task is null;
create index receipts_open on receipts (seen_at) where open;

-- Each fact is told once: when it comes, or when its message becomes known.
create trigger receipts_tell after update on receipts
when new.task is not null and coalesce(new.delivered_at, new.undelivered_at) is not null begin
  insert into outbox (at, tenant, type, subject, body)
  select w.at, m.tenant, 'message.' || w.what, m.id, json_object('tries', (select t.tries from tasks t where t.id = m.task),
    'receipt', new.name, 'reason', iif(w.what = 'undelivered', new.reason, null),
    'category', iif(w.what = 'undelivered', new.category, null))
  from (select 1 as place, 'delivered' as what, new.delivered_at as at, old.delivered_at as before
    union all select 2, 'read', new.read_at, old.read_at
    union all select 3, 'undelivered', iif(new.delivered_at is null, new.undelivered_at, null), old.undelivered_at) w
  cross join messages m
  where m.task = new.task and w.at is not null and (w.before is null or old.task is null)
    and (new.last or w.what = 'undelivered')
    and exists (select 1 from subscriptions s where s.tenant = m.tenant and s.active and (s.events like '%"*"%'
      or s.events like '%"message.*"%' or s.events like '%"message.' || w.what || '"%'))
  order by w.place;
end;
