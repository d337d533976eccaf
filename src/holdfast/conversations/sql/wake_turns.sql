-- Wakes the turns that wait for a conversation or hold one. The notification goes to all listeners and has no content, because other
-- tenants receive it, too. ($1 is the tenant, as in every statement.)
select pg_notify('holdfast_turns', '') where $1::uuid is not null
