-- Lists approvals that wait for a decision, oldest first.
select * from approval where tenant_id = $1 and state = 'pending' and ($2::text is null or user_name = $2) order by created_at limit $3
