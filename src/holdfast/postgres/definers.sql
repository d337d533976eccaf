-- Makes holdfast_owner the owner of all functions that run with their owner's rights. This role is not a superuser, so
-- a defect in one of them exposes rows, but never the server's files and programs, whichever role migrates. It gets the rights on tables
-- and functions that they need.
do $$
declare
  found record;
begin
  grant usage, create on schema holdfast to holdfast_owner;
  grant execute on all functions in schema holdfast to holdfast_owner;
  for found in select polrelid::regclass as name from pg_catalog.pg_policy where polname = 'of_the_owner' loop
    execute format('grant select, insert, update, delete on %s to holdfast_owner', found.name);
  end loop;
  for found in
    select p.oid::regprocedure as name from pg_catalog.pg_proc p
    where p.pronamespace = 'holdfast'::regnamespace and p.prosecdef and p.proowner <> 'holdfast_owner'::regrole
  loop
    execute format('alter function %s owner to holdfast_owner', found.name);
  end loop;
end $$
