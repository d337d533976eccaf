-- Wakes those who wait for a conversation, or hold one; a hint, told to everyone, that says nothing: other tenants hear it.
-- ($1 is the tenant, as in every statement.)
select pg_notify('holdfast_turns', '') where $1::uuid is not null
