-- Take somebody off the roster.
delete from roster where tenant = :tenant and sender = :sender and source = :source returning name, squad, role
