-- One at a time may say which record of the target is which of this type.
update job_types set reader_until = reader_until where job = :job and type = :type returning type
