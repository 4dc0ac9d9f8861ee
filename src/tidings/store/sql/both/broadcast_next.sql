-- When the pump looks again (null: never), unless somebody wants it sooner.
update broadcasts set check_at = :check_at where group_id = :group_id and check_at = :leased
