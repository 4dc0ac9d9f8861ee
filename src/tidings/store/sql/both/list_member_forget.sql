-- Take a contact off every list.
delete from list_members where contact = :id
