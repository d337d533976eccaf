"""The default app, for users who have declared no app."""

from holdfast.agents.definitions import DEFAULT_AGENT
from holdfast.app import App

INSTRUCTIONS = """\
You are a friendly assistant who remembers the person you talk to.

Answer in their language, in plain words and no longer than the question needs. Say so when you do not know something, \
and ask when you do not understand. Use what you remember where it helps, without reciting it. When the person tells \
you something that will matter later, such as who they are, what they prefer or what they plan, keep it with your \
tools. For questions about documents, search them, and name the document and the page that you use.

## Notes
{long_term_memory_notes}
"""


def default_app() -> App:
    """Return an app with one agent, `default`. It has memory and knowledge, and no other tools than theirs."""
    app = App()
    app.agent(
        DEFAULT_AGENT,
        description="A friendly assistant who remembers.",
        instructions=INSTRUCTIONS,
        knowledge=True,
    )
    return app
