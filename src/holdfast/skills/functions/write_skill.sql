-- Returns a skill for the history: without data derived from its text, and with the hashes of its files.
create or replace function holdfast.skill_told(skill public.skill_t) returns jsonb language plpgsql stable as $$
begin
  return to_jsonb(skill) - '{description_embedding,terms,embedded}'::text[] || jsonb_build_object('files', (
    select coalesce(jsonb_object_agg(f.path, encode(sha256(f.content), 'hex') || case when f.executable then ' x' else '' end), '{}')
    from public.skill_file f where f.host_id = skill.host_id and f.skill_id = skill.skill_id));
end $$;
revoke execute on function holdfast.skill_told from public;
grant execute on function holdfast.skill_told to holdfast_app;

-- Stores a skill and returns its version. `given` has the given columns; the others are unchanged, and so are its files if `paths` is null. An
-- unchanged skill is not written again.
create or replace function holdfast.write_skill(
  tenant uuid, called text, given jsonb, paths text[], contents bytea[], executables boolean[], person text
) returns bigint language plpgsql as $$
#variable_conflict use_column
declare
  aside constant text[] := '{description_embedding,terms,embedded,aggregate_version,update_ts,update_user}';
  was public.skill_t;
  item public.skill_t;
  before jsonb;
  files jsonb;
begin
  select s.* into was from public.skill_t s where s.host_id = tenant and s.name = called for update;
  if found then
    before := holdfast.skill_told(was);
    item := jsonb_populate_record(was, given);
  else
    item := jsonb_populate_record(null::public.skill_t, jsonb_build_object(
      'host_id', tenant, 'skill_id', holdfast.uuid7(), 'name', called, 'description', '', 'version', '1.0.0', 'front_matter', '{}'::jsonb,
      'origin', 'db', 'app_name', '', 'gone', false, 'aggregate_version', 0, 'active', true, 'created_at', holdfast.now()) || given);
  end if;
  files := case when paths is null then before -> 'files' else (
    select coalesce(jsonb_object_agg(f.path, encode(sha256(f.content), 'hex') || case when f.executable then ' x' else '' end), '{}')
    from unnest(paths, contents, executables) f (path, content, executable)) end;
  if before - aside = (to_jsonb(item) - aside) || jsonb_build_object('files', files) then
    return was.aggregate_version;
  end if;
  item.aggregate_version := item.aggregate_version + 1;
  item.update_user := person;
  item.update_ts := holdfast.now();
  if item.description is not distinct from was.description then
    item.terms := was.terms;
  else
    perform holdfast.unindex(tenant, 'skill', array[item.skill_id]);
    item.embedded := null;
    item.description_embedding := null;
  end if;
  insert into public.skill_t values (item.*)
  on conflict (host_id, skill_id) do update set
    parent_skill_id = excluded.parent_skill_id, description = excluded.description, content_markdown = excluded.content_markdown,
    description_embedding = excluded.description_embedding, version = excluded.version, front_matter = excluded.front_matter,
    origin = excluded.origin, app_name = excluded.app_name, gone = excluded.gone, aggregate_version = excluded.aggregate_version, active = excluded.active, terms = excluded.terms,
    embedded = excluded.embedded, update_ts = excluded.update_ts, update_user = excluded.update_user;
  insert into public.registry_term (host_id, kind, term, id)
  select tenant, 'skill', t.term, item.skill_id from unnest(item.terms) t (term) on conflict do nothing;
  if paths is not null then
    delete from public.skill_file f where f.host_id = tenant and f.skill_id = item.skill_id and f.path <> all(paths);
    insert into public.skill_file (host_id, skill_id, path, content, executable)
    select tenant, item.skill_id, f.path, f.content, f.executable from unnest(paths, contents, executables) f (path, content, executable)
    on conflict (host_id, skill_id, path) do update set content = excluded.content, executable = excluded.executable;
  end if;
  perform holdfast.note_changes(tenant, array['skill'], array[called], array[before], array[holdfast.skill_told(item)], person);
  return item.aggregate_version;
end $$;
revoke execute on function holdfast.write_skill from public;
grant execute on function holdfast.write_skill to holdfast_app;
