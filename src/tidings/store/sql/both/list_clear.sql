-- Take some members off a list that is no more.
delete from list_members where list = :list
  and contact in (select contact from list_members where list = :list order by contact limit :limit)
returning contact
