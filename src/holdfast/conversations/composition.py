"""Composes the services for the conversations of a tenant."""

from dataclasses import dataclass

from holdfast.access.identities import Identities
from holdfast.bus.feed_options import Listen
from holdfast.bus.log import Log
from holdfast.bus.notifications import Notifications
from holdfast.conversations.conversations import Conversations
from holdfast.conversations.notes import Notes
from holdfast.conversations.sessions import Sessions
from holdfast.conversations.snapshots import Snapshots
from holdfast.conversations.state import State
from holdfast.conversations.turn_claims import TurnClaims
from holdfast.postgres.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantConversations:
    """The conversations of a tenant, with state, turns, sessions and notes."""

    conversations: Conversations
    snapshots: Snapshots
    state: State
    turns: TurnClaims
    sessions: Sessions
    notes: Notes


def conversations_of(
    database: Database, *, identities: Identities, log: Log, listen: Listen, notifications: Notifications
) -> TenantConversations:
    """Return the services of a tenant."""
    conversations = Conversations(database, identities, log)
    return TenantConversations(
        conversations=conversations,
        snapshots=Snapshots(database, identities),
        state=State(database, log),
        turns=TurnClaims(database, conversations, listen=listen, notifications=notifications),
        sessions=Sessions(database, identities),
        notes=Notes(database, identities),
    )
