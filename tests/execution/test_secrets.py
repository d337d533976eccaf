import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import Broken, HoldfastError, InvalidInput, NotFound, TooLarge, Unavailable
from holdfast.engine import Engine
from holdfast.execution.encryption import EncryptionKey
from holdfast.execution.secrets import MAX_VALUE_BYTES, Secret, Secrets, checked_hosts

pytestmark = pytest.mark.req("EXEC-04")

VALUE = "hunter2-hunter2"


@pytest.fixture
def secrets(engine: Engine) -> Secrets:
    """The secrets of a tenant."""
    return Secrets(engine.database, engine.secret)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_sealed_opens_under_the_same_name_and_no_other(text: str, about: str) -> None:
    key = EncryptionKey(b"key")

    sealed = key.seal(text, about=about)

    assert key.open(sealed, about=about) == text
    assert sealed != key.seal(text, about=about)
    for other, where in ((key, about + "x"), (EncryptionKey(b"other"), about)):
        with pytest.raises(Broken):
            other.open(sealed, about=where)


@pytest.mark.parametrize("place", [0, 1, 13, -1])
def test_a_sealed_text_that_was_changed_does_not_open(place: int) -> None:
    key = EncryptionKey(b"key")
    sealed = bytearray(key.seal(VALUE, about="a"))
    sealed[place] ^= 1

    for damaged in (bytes(sealed), bytes(sealed[:5]), b""):
        with pytest.raises(Broken, match="cannot be decrypted"):
            key.open(damaged, about="a")


def test_a_key_shows_which_it_is_and_not_what() -> None:
    one, same, other = EncryptionKey(b"one"), EncryptionKey(b"one"), EncryptionKey(b"other")

    assert one.id == same.id != other.id
    assert repr(one) == f"EncryptionKey({one.id})"
    with pytest.raises(InvalidInput, match="is empty"):
        EncryptionKey(b"")


async def test_a_secret_is_opened_by_name_and_listed_without_its_value(secrets: Secrets) -> None:
    known = await secrets.set("stripe", VALUE, hosts=["API.stripe.com", "*.stripe.com"], by="ann")
    await secrets.set("weather", "é" * 100)

    opened = await secrets.values(["stripe", "weather", "missing", "no name"])

    assert opened == {"stripe": Secret(VALUE, ("api.stripe.com", "*.stripe.com")), "weather": Secret("é" * 100)}
    listed = await secrets.list()
    assert [each.name for each in listed] == ["stripe", "weather"]
    assert listed[0] == known
    assert (known.version, known.usable, known.updated_by) == (1, True, "ann")
    assert VALUE not in repr(listed)


@pytest.mark.req("SKILL-01")
async def test_another_value_takes_its_place_and_the_history_has_neither(engine: Engine, secrets: Secrets) -> None:
    await secrets.set("stripe", VALUE, by="ann")
    changed = await secrets.set("stripe", "another-value", hosts=["a.com"], by="bob")
    await secrets.remove("stripe", by="eve")

    changes = await engine.database.all("select * from registry_change where host_id = $1 order by revision")
    assert changed.version == 2
    assert [(row["kind"], row["name"], row["operation"], row["update_user"]) for row in changes] == [
        ("secret", "stripe", "created", "ann"),
        ("secret", "stripe", "changed", "bob"),
        ("secret", "stripe", "removed", "eve"),
    ]
    assert changes[1]["before"]["hosts"] == []
    assert changes[1]["after"]["hosts"] == ["a.com"]
    assert all("sealed" not in (row[side] or {}) for row in changes for side in ("before", "after"))
    assert [row["revision"] for row in changes] == [1, 2, 3]
    assert await secrets.values(["stripe"]) == {}


@pytest.mark.req("SAFE-02")
async def test_the_value_is_nowhere_in_the_database_and_nowhere_in_the_log(
    engine: Engine, secrets: Secrets, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        await secrets.set("stripe", VALUE)
        await secrets.set("stripe", VALUE)
        opened = await secrets.values(["stripe"])
    async with engine.postgres.owner() as owner:
        tables = await owner.all("select oid::regclass::text as name from pg_class where relkind = 'r' and oid > 16383")
        dump = [row[0] for table in tables for row in await owner.all(f"select t::text from {table['name']} t")]

    everything = "\n".join([*dump, caplog.text, repr(opened), str(opened["stripe"]), f"{opened['stripe']}"])
    assert "stripe" in everything
    assert VALUE not in everything
    assert VALUE.encode().hex() not in everything


@pytest.mark.req("SAFE-02")
async def test_a_secret_is_one_tenant_s_and_does_not_open_at_another_s_or_under_another_name(engine: Engine) -> None:
    other = (await engine.tenants.create("other")).id
    ours, theirs = Secrets(engine.database, b"key"), Secrets(engine.tenant(other).database, b"key")
    await ours.set("stripe", VALUE)
    await ours.set("copy", "x")
    await theirs.set("stripe", "theirs")
    async with engine.postgres.owner() as owner:
        await owner.run("update secret set sealed = (select sealed from secret where key_id = $1 and name = 'stripe' "
                        "and host_id <> $2) where (host_id = $2 and name = 'stripe') or name = 'copy'",
                        EncryptionKey(b"key").id, other)  # fmt: skip

    assert (await ours.values(["stripe"]))["stripe"].value == VALUE
    for place, name in ((theirs, "stripe"), (ours, "copy")):
        with pytest.raises(
            Broken, match=f"the secret {name} cannot be decrypted: it was changed, or it belongs to another"
        ):
            await place.values([name])


async def test_a_secret_of_another_key_says_so_and_what_to_do(engine: Engine, secrets: Secrets) -> None:
    await Secrets(engine.database, b"former key").set("stripe", VALUE)

    with pytest.raises(
        Unavailable, match="the secret stripe cannot be decrypted: it was encrypted with another key"
    ) as told:
        await secrets.values(["stripe"])
    [listed] = await secrets.list()
    await secrets.set("stripe", "new")

    assert "value of execution.secret_key" in told.value.next
    assert "or set the secret again" in told.value.next
    assert not listed.usable
    assert (await secrets.values(["stripe"]))["stripe"].value == "new"


async def test_of_many_who_set_a_secret_at_once_one_is_the_last(secrets: Secrets) -> None:
    async with asyncio.timeout(30):
        known = await asyncio.gather(*(secrets.set("stripe", f"value {number}") for number in range(10)))

    assert sorted(each.version for each in known) == list(range(1, 11))
    last = max(range(10), key=lambda number: known[number].version)
    assert (await secrets.values(["stripe"]))["stripe"].value == f"value {last}"


@pytest.mark.parametrize(
    ("hosts", "host", "allowed"),
    [
        ((), "anything.example", True),
        (("api.example.com",), "api.example.com", True),
        (("api.example.com",), "API.example.com.", True),
        (("api.example.com",), "example.com", False),
        (("api.example.com",), "api.example.com.evil.com", False),
        (("*.example.com",), "api.example.com", True),
        (("*.example.com",), "a.b.example.com", True),
        (("*.example.com",), "example.com", False),
        (("*.example.com",), ".example.com", False),
        (("*.example.com",), "evilexample.com", False),
        (("10.0.0.7",), "10.0.0.7", True),
        (("10.0.0.7",), "10.0.0.70", False),
        (("[2001:DB8::1]",), "2001:db8:0::1", True),
        (("localhost",), "localhost", True),
    ],
)
def test_a_secret_is_for_the_hosts_that_it_names(hosts: tuple[str, ...], host: str, allowed: bool) -> None:
    assert Secret("x", checked_hosts(hosts)).allows(host) is allowed


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize(
    ("name", "value", "hosts", "error", "said"),
    [
        ("", "x", (), InvalidInput, "'' is not a valid name for a secret"),
        ("a b", "x", (), InvalidInput, "'a b' is not a valid name for a secret"),
        ("x" * 127, "x", (), InvalidInput, "Use up to 126 letters"),
        (7, "x", (), InvalidInput, "7 is not a valid name for a secret"),
        ("a", "", (), InvalidInput, "the secret a has no value"),
        ("a", b"x", (), InvalidInput, "the secret a has no value"),
        ("a", VALUE + "\0", (), InvalidInput, "it contains a NUL"),
        ("a", VALUE + "\ud800", (), InvalidInput, "lone surrogate"),
        ("a", VALUE * 5000, (), TooLarge, f"it has 75000 bytes, the limit is {MAX_VALUE_BYTES}"),
        ("a", "x", ("https://a.com",), InvalidInput, "'https://a.com' is not a valid host for a secret"),
        ("a", "x", ("a.com:443",), InvalidInput, "without scheme, port and path"),
        ("a", "x", ("*",), InvalidInput, "is not a valid host for a secret"),
        ("a", "x", ("",), InvalidInput, "is not a valid host for a secret"),
        ("a", "x", (None,), InvalidInput, "None is not a valid host for a secret"),
        ("a", "x", "a.com", InvalidInput, "the hosts of a secret are not a list"),
        ("a", "x", tuple(f"h{n}.com" for n in range(101)), TooLarge, "at most 100 hosts"),
    ],
)
async def test_what_is_no_secret_is_refused_and_its_value_not_told(
    secrets: Secrets, name: Any, value: Any, hosts: Any, error: type[HoldfastError], said: str
) -> None:
    with pytest.raises(error) as refused:
        await secrets.set(name, value, hosts=hosts)

    assert said in str(refused.value)
    assert VALUE not in str(refused.value)
    assert await secrets.list() == []


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize("name", ["stripe", "", "\0", "x" * 1000])
async def test_a_secret_that_is_not_there_cannot_be_removed(secrets: Secrets, name: str) -> None:
    with pytest.raises(NotFound, match="does not exist"):
        await secrets.remove(name)
