-- A session that has not ended.
select s.user_name, s.agent, s.transport, s.protocol_version, s.client, s.log_level, s.subscriptions, s.listener from mcp_session s
where s.tenant_id = $1 and s.key = $2 and s.ends_at > holdfast.now()
