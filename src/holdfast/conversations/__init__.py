"""What was said.

A conversation is a log of nodes with a gap-free number, and a tree: a root with a child for each message.
`Conversations` writes and reads it whoever speaks; `State` keeps what belongs to it, to its user and to its app;
`Turns` decides who may work on it; `Snapshots` reads it whole; `Sessions` says which one a user is in;
`Notes` are what an agent wrote down about a user.
"""

from holdfast.conversations.conversation import Conversation
from holdfast.conversations.conversations import Conversations
from holdfast.conversations.nodes import Draft, Node
from holdfast.conversations.notes import Notes
from holdfast.conversations.sessions import Sessions
from holdfast.conversations.snapshots import Snapshots
from holdfast.conversations.state import DELETED, State
from holdfast.conversations.turns import Turn, Turns

__all__ = [
    "DELETED",
    "Conversation",
    "Conversations",
    "Draft",
    "Node",
    "Notes",
    "Sessions",
    "Snapshots",
    "State",
    "Turn",
    "Turns",
]
