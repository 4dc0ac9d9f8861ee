-- Forget a list; its members are taken off afterwards, in pages.
delete from lists where id = :id and tenant = :tenant returning id
