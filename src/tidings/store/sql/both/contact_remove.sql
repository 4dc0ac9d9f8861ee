-- Forget a contact.
delete from contacts where id = :id and tenant = :tenant returning id
