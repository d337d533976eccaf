"""Proposals: definitions of tools that sources have now, and that are held until an administrator approves them."""

from typing import Annotated, Literal

import msgspec

from holdfast.core.errors import Conflict, NotFound
from holdfast.server.fields import ShortName, about, documented
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.skills.sources.reports import DecidedProposals, Proposal, ProposalState

operations = ApiOperations("sources")

MAX_PAGE = 1000

PageLimit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)]
Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
HeldName = Annotated[str, documented(minLength=1)]


class ProposalList(msgspec.Struct, frozen=True):
    """Held definitions of tools, by source and tool."""

    proposals: list[Proposal]


class ProposalDecision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A decision about held definitions.

    `tools` maps the name of each tool to the hash of the definition that you have read. If one of the definitions has
    changed meanwhile, nothing is decided.
    """

    decision: Literal["approve", "reject"]
    tools: Annotated[dict[HeldName, Hash], documented(minProperties=1, maxProperties=MAX_PAGE)]


@operations.declare("GET", "/api/proposals", needs="admin", errors=[NotFound])
async def list_proposals(
    call: ApiCall,
    source: Annotated[ShortName | None, about("Only of this source.")] = None,
    state: Annotated[ProposalState | None, about("State. By default, those that hold a tool: open, rejected.")] = None,
    limit: PageLimit = 100,
) -> ProposalList:
    """List definitions of tools that are held until somebody approves them, with the differences."""
    return ProposalList(await call.engine.sources.proposals.list(source, state=state, limit=limit))


@operations.declare(
    "POST",
    "/api/sources/{name}/proposals",
    needs="admin",
    errors=[NotFound, Conflict],
    audit=["decision", "tools"],
)
async def decide_proposals(call: ApiCall, name: str, body: ProposalDecision) -> DecidedProposals:
    """Approve or reject held definitions of tools of a source. Exactly the given definitions are approved."""
    call.principal.require_person()
    proposals = call.engine.sources.proposals
    decide = proposals.approve if body.decision == "approve" else proposals.reject
    return await decide(name, body.tools, by=call.principal.user)
