"""How the statements of users' consent find their rows."""

from tests.rules.plan import ID, Plan

PKEY = "source_connection_pkey"
OF_ROW = (ID, "user 7", 1)

OF_A_TENANT: dict[str, Plan] = {
    "execution/consent/sql/begin_consent.sql": Plan(
        "consent_request_by_user", (b"digest", ID, "user 7", None, b"", "k", 600.0, 9)
    ),
    "execution/consent/sql/break_connection.sql": Plan(PKEY, (*OF_ROW, "it was revoked")),
    "execution/consent/sql/claim_refresh.sql": Plan(PKEY, (*OF_ROW, 30.0)),
    "execution/consent/sql/connection.sql": Plan(PKEY, ("source-7", "user 7")),
    "execution/consent/sql/connections_of_user.sql": Plan("tool_source_", ("user 7",)),
    "execution/consent/sql/consent_request.sql": Plan("consent_request_pkey", (b"digest",)),
    "execution/consent/sql/consent_source.sql": Plan("tool_source_host_id_name_key", ("source-7",)),
    "execution/consent/sql/registration.sql": Plan("oauth_registration_pkey", ("issuer 7", "back")),
    "execution/consent/sql/release_refresh.sql": Plan(PKEY, OF_ROW),
    "execution/consent/sql/remove_connection.sql": Plan(PKEY, ("source-7", "user 7")),
    "execution/consent/sql/remove_registration.sql": Plan("oauth_registration_pkey", ("issuer 7",)),
    "execution/consent/sql/store_refreshed.sql": Plan(PKEY, (*OF_ROW, b"", "k", ["a"], True, 60.0)),
    "execution/consent/sql/take_consent_request.sql": Plan("consent_request_pkey", (b"digest",)),
}

ROWS = """
insert into source_connection (host_id, source_id, user_name, sealed, key_id, origin, issuer, refreshable)
  select o.host_id, o.source_id, 'user ' || n, '', 'k', '', '', true from tool_source o, generate_series(1, 60) n;
insert into consent_request (host_id, digest, source_id, user_name, sealed, key_id, expires_at)
  select o.host_id, sha256((o.name || '/' || n)::bytea), o.source_id, 'user ' || n, '', 'k',
    holdfast.now() + n * interval '1 minute'
  from tool_source o, generate_series(1, 30) n;
insert into oauth_registration (host_id, issuer, redirect_uri, sealed, key_id)
  select id, 'issuer ' || n, 'back', '', 'k' from busy, generate_series(1, 100) n;
"""
