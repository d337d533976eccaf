"""Conversations: what users and agents say, with state, turns, sessions and notes.

A conversation is a log of nodes with gap-free numbers. It is also a tree: a root with one child for each message.
`Conversations` writes and reads conversations. `State` stores the key-value pairs of a conversation, its user and its
app. `TurnClaims` lets one turn at a time work on a conversation. `Snapshots` reads whole conversations. `Sessions`
stores which session a user continues with an agent. `Notes` stores what an agent writes down about a user.
"""

from holdfast.conversations.conversation import Conversation
from holdfast.conversations.conversations import Conversations
from holdfast.conversations.nodes import Node, NodeInput
from holdfast.conversations.notes import Notes
from holdfast.conversations.sessions import Sessions
from holdfast.conversations.snapshots import Snapshots
from holdfast.conversations.state import DELETED, State
from holdfast.conversations.turn_claims import HeldTurn, TurnClaims

__all__ = [
    "DELETED",
    "Conversation",
    "Conversations",
    "HeldTurn",
    "Node",
    "NodeInput",
    "Notes",
    "Sessions",
    "Snapshots",
    "State",
    "TurnClaims",
]
