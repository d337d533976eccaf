"""What the graph returns: entities, how they are linked, and the memories that say so."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from holdfast.core.text import restore
from holdfast.memory.owners import Owner
from holdfast.postgres.database import Row

DuplicateReason = Literal["spaces", "ending", "initials", "spelling"]


@dataclass(frozen=True, slots=True)
class GraphEntity:
    """Something that memories and documents name. `aliases` are the other names that are merged into it.

    `mentions` counts the memories and parts of documents that name it, at most 10,000 for each name.
    """

    id: UUID
    name: str
    type: str
    description: str | None
    aliases: tuple[str, ...]
    mentions: int
    owner: Owner


@dataclass(frozen=True, slots=True)
class EntityHit:
    """An entity that a search found: by its name, or by memories whose meaning matches."""

    entity: GraphEntity
    score: float
    by: Literal["name", "meaning"]


@dataclass(frozen=True, slots=True)
class Support:
    """A memory, or a part of a document, that names entities. `citation` is its place in a document."""

    id: UUID
    text: str
    created_at: datetime
    document: UUID | None = None
    name: str | None = None
    title: str | None = None
    chunk: int | None = None
    section: tuple[str, ...] = ()
    page: int | None = None
    last_page: int | None = None
    start: int | None = None
    end: int | None = None
    citation: str | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An entity that another is linked to. Without a `relation`, memories only name both.

    `outgoing`: the relation goes from the entity that was asked for to this one. `memories` are some of the `count`.
    """

    entity: GraphEntity
    relation: str | None
    outgoing: bool
    count: int
    memories: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class Relationship:
    """A stated relation between two entities of a path. `forward`: it goes in the direction of the path."""

    type: str
    forward: bool
    description: str | None


@dataclass(frozen=True, slots=True)
class PathHop:
    """One step of a path. `label` are its relations as text, or "mentioned together": memories name both entities."""

    source: GraphEntity
    target: GraphEntity
    label: str
    relations: tuple[Relationship, ...]
    supports: tuple[Support, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """How one entity relates to another, hop by hop."""

    hops: tuple[PathHop, ...]

    @property
    def entities(self) -> tuple[GraphEntity, ...]:
        """Return the entities from end to end."""
        return (self.hops[0].source, *(hop.target for hop in self.hops))


class Paths(list[Path]):
    """Paths, the shortest first. `cut`: a limit ended the search, so that there may be more."""

    cut: bool = False


@dataclass(frozen=True, slots=True)
class Merge:
    """Why two names are one entity: a memory states it (`memory`), or somebody merged them."""

    id: UUID
    keep: UUID
    keep_name: str
    other: UUID
    other_name: str
    memory: UUID | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two entities that may be the same, and why: "spaces", "initials", "spelling" or "ending"."""

    keep: GraphEntity
    other: GraphEntity
    reason: DuplicateReason


MENTIONED_TOGETHER = "mentioned together"


def label_of(relations: Sequence[Relationship]) -> str:
    """Return the relations of a hop as text, such as "WORKS_AT", with "<" if one goes against the path."""
    return ", ".join(each.type if each.forward else f"<{each.type}" for each in relations) or MENTIONED_TOGETHER


def support_of(row: Row) -> Support:
    """Return a support from a row of `supports.sql`."""
    name = None if row["name"] is None else restore(row["name"])
    title = None if row["title"] is None else restore(row["title"])
    section = tuple(restore(each) for each in row["section"] or ())
    return Support(
        row["id"],
        restore(row["text"]),
        row["created_at"],
        row["document_id"],
        name,
        title,
        row["chunk_index"],
        section,
        row["first_page"],
        row["last_page"],
        row["char_start"],
        row["char_end"],
        None
        if row["document_id"] is None
        else _citation(title or name or "", section, row["first_page"], row["last_page"]),
    )


def _citation(title: str, section: Sequence[str], first: int | None, last: int | None) -> str:
    parts = [title, *section[-1:]]
    if first is not None:
        parts.append(f"page {first}" if last in (None, first) else f"pages {first}-{last}")
    return ", ".join(parts)
