-- Deletes the reservations of a model call that was not made. The database may have them or not: the call was cancelled while it reserved.
delete from budget_reservation r using unnest($3::uuid[], $4::text[]) as given (limit_id, subject)
where r.tenant_id = $1 and r.limit_id = given.limit_id and r.subject = given.subject and r.id = $2
