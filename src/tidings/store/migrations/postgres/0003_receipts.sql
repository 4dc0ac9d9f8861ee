-- Receipts: what providers tell later of a message that they took, found by the name that they gave it.

-- A row may come before its message is known to have been sent: `task` is then still empty. Of a text that was sent in
-- parts, the last one decides. `open` says that its message was at work when the proof of its sending came.
create table receipts (
  channel        text collate "C" not null,
  name           text collate "C" not null,
  task           bigint,
  last           boolean not null default true,
  open           boolean not null default false,
  seen_at        bigint not null,
  delivered_at   bigint,
  read_at        bigint,
  undelivered_at bigint,
  reason         text,
  category       text check (category in ('temporary', 'permanent', 'throttling', 'validation', 'system')),
  primary key (channel, name),
  check (read_at is null or delivered_at is not null)
);
create index receipts_task on receipts (task) where task is not null;
-- What nobody knows, to be forgotten; and what is still to be proved.
create index receipts_strange on receipts (seen_at) where task is null;
create index receipts_open on receipts (seen_at) where open;

-- Each fact is told once: when it comes, or when its message becomes known.
create function tidings_tell_receipt() returns trigger language plpgsql as $$
begin
  insert into outbox (at, tenant, type, subject, body)
  select w.at, m.tenant, 'message.' || w.what, m.id, json_build_object('tries', (select t.tries from tasks t where t.id = m.task),
    'receipt', new.name, 'reason', case when w.what = 'undelivered' then new.reason end,
    'category', case when w.what = 'undelivered' then new.category end)::text
  from (values (1, 'delivered', new.delivered_at, old.delivered_at), (2, 'read', new.read_at, old.read_at),
    (3, 'undelivered', case when new.delivered_at is null then new.undelivered_at end, old.undelivered_at))
    w(place, what, at, before)
  cross join messages m
  where m.task = new.task and w.at is not null and (w.before is null or old.task is null)
    and (new.last or w.what = 'undelivered')
    and exists (select 1 from subscriptions s where s.tenant = m.tenant and s.active and (s.events like '%"*"%'
      or s.events like '%"message.*"%' or s.events like '%"message.' || w.what || '"%'))
  order by w.place;
  return null;
end $$;
create trigger receipts_tell after update on receipts for each row
  when (new.task is not null and coalesce(new.delivered_at, new.undelivered_at) is not null)
  execute function tidings_tell_receipt();
