-- Results of this source are written back from now on.
insert into write_backs (source, tenant) values (:source, :tenant) on conflict do nothing
