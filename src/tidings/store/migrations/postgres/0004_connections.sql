-- Connections: channels that hold a session of their own (E7). `link` is null where there is none.
alter table queues
  add column link       text check (link in ('connected', 'reconnecting', 'logged_out')),
  add column link_why   text,
  add column link_since bigint,                       -- when it came into this state
  add column link_tries integer not null default 0,   -- reconnects in a row that did not last
  add column link_told  text,                         -- what the world was last told of it
  add column lost_at    bigint,                       -- since when it is not connected
  add column retry_at   bigint,                       -- the next reconnect; null: a send has just met the loss
  add column look_at    bigint not null default 0,    -- when somebody should look again
  add column look_no    bigint not null default 0;    -- the fence: a look that was overtaken writes nothing

-- Whether the sender said when it expires; if so, no wait of the channel shortens it (B8).
alter table messages add column own_expiry boolean not null default false;
