-- Whether results of a source are written back.
select source from write_backs where source = :source
