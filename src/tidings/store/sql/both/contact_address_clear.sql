-- Forget the addresses of a contact.
delete from contact_addresses where contact = :id
