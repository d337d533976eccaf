-- Moves a node and all nodes below it to another place in its tree: under `under`, before its child `sibling` or as the last child.
-- A place is a number halfway between two others, with any number of digits (a product is exact, a quotient is not). When places become
-- long, the siblings are renumbered.
-- `topic`: the topic whose consumers have to be woken.
create or replace function holdfast.move_node(
  tenant uuid, node uuid, expected int, under uuid, sibling uuid, out outcome text, out version int, out topic text
) language plpgsql as $$
#variable_conflict use_column
declare
  change record;
  next_place numeric;
  new_place numeric;
  moved_form text;
begin
  -- Lock first: no other transaction can move the target while its ancestors are read.
  perform from public.conversation c
    where c.tenant_id = tenant and c.id = (select n.root from public.node n where n.tenant_id = tenant and n.id = node) for update;
  if not exists (
    select from public.node n join public.node t on t.tenant_id = tenant and t.id = under and t.root = n.root and not t.deleted
      where n.tenant_id = tenant and n.id = node) then
    outcome := case when exists (select from public.node n where n.tenant_id = tenant and n.id = node) then 'no parent' else 'missing' end;
    return;
  end if;
  if exists (
    with recursive above as (
      select under as id
      union all
      select next.parent from above a cross join lateral (
        select n.parent from public.node n where n.tenant_id = tenant and n.id = a.id offset 0) next
    )
    select from above where id = node) then
    outcome := 'cycle';
    return;
  end if;
  if sibling is not null and (sibling = node or not exists (
    select from public.node n where n.tenant_id = tenant and n.id = sibling and n.parent = under and not n.deleted)) then
    outcome := 'no sibling';
    return;
  end if;

  change := holdfast.begin_change(tenant, node, expected);
  outcome := coalesce(change.outcome, 'done');
  move_node.version := change.version;
  if outcome <> 'done' then
    return;
  end if;
  new_place := change.revision;
  for attempt in 1..2 loop
    exit when sibling is null;
    select n.place from public.node n where n.tenant_id = tenant and n.id = sibling into next_place;
    select (coalesce(max(n.place), 0) + next_place) * 0.5 from public.node n
      where n.tenant_id = tenant and n.root = change.root and n.parent = under and n.place < next_place and n.id <> node into new_place;
    exit when scale(new_place) < 100;
    update public.node n set place = counted.number
      from (
        select s.id, row_number() over (order by s.place, s.seq) as number from public.node s
        where s.tenant_id = tenant and s.root = change.root and s.parent = under
      ) counted
      where n.tenant_id = tenant and n.id = counted.id;
  end loop;
  update public.node n set parent = under, place = new_place,
      version = n.version + 1, revision = change.revision, updated_at = holdfast.now()
    where n.tenant_id = tenant and n.id = node returning n.form into moved_form;
  if change.topic is not null then
    move_node.topic := holdfast.tell(
      tenant, change.topic, change.hash, change.root, change.revision, node, 'move', form => moved_form);
  end if;
end $$;
revoke execute on function holdfast.move_node from public;
grant execute on function holdfast.move_node to holdfast_app;
