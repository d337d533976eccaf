import base64
from uuid import UUID

import pytest

from holdfast.conversations import Conversation, Conversations
from holdfast.core.cursors import Page, read_cursor, write_cursor
from holdfast.core.errors import InvalidInput
from holdfast.engine import Engine

pytestmark = pytest.mark.req("CONV-03")

BAD = ["", "=", "x", "not a cursor", "é", "\ud83d", base64.urlsafe_b64encode(b"x" * 16).decode(), "A" * 4000]


async def pages(conversations: Conversations, *, limit: int, user: str | None = None) -> list[Page[Conversation]]:
    """All pages of a list."""
    page = await conversations.list(user=user, limit=limit)
    found = [page]
    while page.cursor is not None:
        page = await conversations.list(user=user, limit=limit, cursor=page.cursor)
        found.append(page)
    return found


@pytest.mark.parametrize("user", [None, "ann"])
async def test_a_list_goes_on_where_the_page_before_ended(conversations: Conversations, user: str | None) -> None:
    made = [await conversations.create(user="ann") for _ in range(5)]

    found = await pages(conversations, limit=2, user=user)

    assert [len(page) for page in found] == [2, 2, 1]
    assert [talk for page in found for talk in page] == made[::-1]
    assert [len(page) for page in await pages(conversations, limit=5, user=user)] == [5]


async def test_what_happens_between_two_pages_moves_nothing(conversations: Conversations) -> None:
    one, two, three = [await conversations.create() for _ in range(3)]
    page = await conversations.list(limit=1)
    await conversations.create()
    await conversations.append(one.id, "hi", context="text:user:ann")
    await conversations.remove(three.id)

    rest = await conversations.list(cursor=page.cursor)

    assert [talk.id for talk in (*page, *rest)] == [three.id, two.id, one.id]


async def test_a_list_is_narrowed_by_app_user_agent_and_kind(conversations: Conversations) -> None:
    ann = await conversations.create(app="shop", user="ann", agent="support")
    bob = await conversations.create(app="shop", user="bob", agent="billing")
    other = await conversations.create(app="desk", user="ann")
    document = await conversations.create(document=True, app="shop")

    assert await conversations.list(app="shop") == [bob, ann]
    assert await conversations.list(user="ann") == [other, ann]
    assert await conversations.list(user="ann", app="shop") == [ann]
    assert await conversations.list(agent="billing") == [bob]
    assert await conversations.list(document=True) == [document]
    assert await conversations.list(user="nobody") == []


async def test_looking_for_a_user_stores_nothing(engine: Engine) -> None:
    await engine.conversations.list(user="nobody")
    await engine.conversations.search("x", user="nobody")

    assert await engine.database.value("select count(*) from identity where tenant_id = $1") == 0


async def test_a_search_finds_nodes_by_a_part_of_their_text(conversations: Conversations, talk: Conversation) -> None:
    later = await conversations.create(user="bob")
    hit = await conversations.append(talk.id, "My Parcel\0 is late", context="text:user:ann")
    await conversations.append(talk.id, "100% sure_", context="text:user:ann")
    gone = await conversations.append(talk.id, "parcel", context="text:user:ann")
    await conversations.delete(gone.id, version=1)
    newest = await conversations.append(later.id, "parcel?", context="text:user:bob")

    found = await conversations.search("PARCEL")

    assert [(each.conversation.id, each.node) for each in found] == [(later.id, newest), (talk.id, hit)]
    assert found.cursor is None
    assert [each.node for each in await conversations.search("parcel", user="ann", app="shop")] == [hit]
    assert [each.node for each in await conversations.search("l\0 i")] == [hit]
    assert [each.node.content for each in await conversations.search("% sure_")] == ["100% sure_"]
    assert await conversations.search("par_el") == []
    assert await conversations.search("parcel", agent="billing") == []


@pytest.mark.parametrize("user", [None, "ann"])
async def test_a_search_goes_on_where_the_page_before_ended(conversations: Conversations, user: str | None) -> None:
    said: list[UUID] = []
    for _ in range(3):
        talk = await conversations.create(user="ann")
        nodes = [await conversations.append(talk.id, "parcel", context="text:user:ann") for _ in range(3)]
        said += [node.id for node in nodes]

    found = [page := await conversations.search("parcel", user=user, limit=2)]
    while page.cursor is not None:
        found.append(page := await conversations.search("parcel", user=user, limit=2, cursor=page.cursor))

    assert [len(page) for page in found] == [2, 2, 2, 2, 1]
    assert [each.node.id for page in found for each in page] == said[::-1]


@pytest.mark.parametrize("text", ["", " \n"])
async def test_a_search_for_nothing_is_refused(conversations: Conversations, text: str) -> None:
    with pytest.raises(InvalidInput, match="the search text is empty"):
        await conversations.search(text)


@pytest.mark.parametrize("cursor", BAD)
async def test_a_cursor_that_no_list_gave_is_refused(conversations: Conversations, cursor: str) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        await conversations.list(cursor=cursor)
    with pytest.raises(InvalidInput, match="cursor"):
        await conversations.search("x", cursor=cursor)


@pytest.mark.parametrize("number", [0, 1, 2**62])
def test_a_cursor_is_one_word_that_says_where_to_go_on(number: int) -> None:
    cursor = write_cursor(UUID(int=7), number)

    assert read_cursor(cursor) == (UUID(int=7), number)
    assert cursor.isascii()
    assert not {"+", "/", "="} & set(cursor)


async def test_a_search_looks_through_so_many_conversations_at_once_and_goes_on(
    conversations: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.conversations.conversations.SEARCHED", 3)
    made = [await conversations.create(user="ann") for _ in range(8)]
    wanted = [await conversations.append(talk.id, "a parcel", context="text:user:ann") for talk in (made[0], made[6])]

    pages = [await conversations.search("parcel", user="ann")]
    while pages[-1].cursor is not None:
        pages.append(await conversations.search("parcel", user="ann", cursor=pages[-1].cursor))

    assert [[hit.node.id for hit in page] for page in pages] == [[wanted[1].id], [], [wanted[0].id]]
