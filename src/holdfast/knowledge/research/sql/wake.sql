-- Wakes the processes that carry out research. ($1 is the tenant, as in every statement.)
select pg_notify('holdfast_research', '') where $1::uuid is not null
