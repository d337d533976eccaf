-- Notifies the Indexers of memories without a vector. ($1 is the tenant, as in every statement.)
select pg_notify('holdfast_memory', '') where $1::uuid is not null
