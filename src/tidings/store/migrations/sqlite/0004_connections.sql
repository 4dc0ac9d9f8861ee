-- Connections: channels that hold a session of their own (E7). `link` is null where there is none.
alter table queues add column link text check (link in ('connected', 'reconnecting', 'logged_out'));
alter table queues add column link_why text;
alter table queues add column link_since integer;                    -- when it came into this state
alter table queues add column link_tries integer not null default 0; -- reconnects in a row that did not last
alter table queues add column link_told text;                        -- what the world was last told of it
alter table queues add column lost_at integer;                       -- since when it is not connected
alter table queues add column retry_at integer;                      -- the next reconnect; null: a send has just met the loss
alter table queues add column look_at integer not null default 0;    -- when somebody should look again
alter table queues add column look_no integer not null default 0;    -- the fence: a look that was overtaken writes nothing

-- Whether the sender said when it expires; if so, no wait of the channel shortens it (B8).
alter table messages add column own_expiry integer not null default false;
