import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.ids import Kind, TenantId, identity_id, uuid7

ACME = TenantId(UUID("0190a8c0-0000-7000-8000-00000000acce"))
OTHER = TenantId(UUID("0190a8c0-0000-7000-8000-00000000beef"))
KINDS: tuple[Kind, ...] = ("user", "agent", "session", "app")


def test_a_uuid7_carries_version_variant_and_the_time() -> None:
    before = time.time_ns() // 1_000_000

    made = uuid7()

    assert made.version == 7
    assert made.variant == uuid.RFC_4122
    assert before - 1 <= made.int >> 80 <= time.time_ns() // 1_000_000 + 1_000


def test_every_uuid7_is_greater_than_the_one_before() -> None:
    made = [uuid7() for _ in range(20_000)]

    assert made == sorted(set(made))


def test_the_clock_may_step_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first = uuid7()
    monkeypatch.setattr(time, "time_ns", lambda: 0)

    second = uuid7()

    assert second > first


def batch(size: int) -> list[UUID]:
    return [uuid7() for _ in range(size)]


def test_threads_never_share_a_uuid7() -> None:
    with ThreadPoolExecutor(8) as threads:
        batches = list(threads.map(batch, [1_000] * 8))

    assert all(made == sorted(made) for made in batches)
    assert len({one.int >> 64 for made in batches for one in made}) == 8_000


@pytest.mark.req("ENG-09")
def test_a_canonical_uuid_is_its_own_identity() -> None:
    name = "0190a8c0-0000-7000-8000-00000000000a"

    assert identity_id(ACME, "user", name) == UUID(name)


@pytest.mark.req("ENG-09")
@pytest.mark.parametrize(
    "name",
    [
        "0190A8C0-0000-7000-8000-00000000000A",
        "{0190a8c0-0000-7000-8000-00000000000a}",
        "0190a8c00000700080000000000000a",
        "urn:uuid:0190a8c0-0000-7000-8000-00000000000a",
    ],
)
def test_another_spelling_of_a_uuid_is_another_name(name: str) -> None:
    made = identity_id(ACME, "user", name)

    assert made != UUID("0190a8c0-0000-7000-8000-00000000000a")
    assert made.version == 5


@pytest.mark.req("ENG-09")
def test_an_identity_is_the_same_in_every_version_of_the_program() -> None:
    assert identity_id(ACME, "user", "ann") == UUID("9607979c-5196-581c-94cc-061cca3dc697")


@pytest.mark.req("ENG-09")
@given(st.text(st.characters(exclude_categories=())))
def test_any_string_has_one_identity_per_tenant_and_kind(name: str) -> None:
    made = [identity_id(tenant, kind, name) for tenant in (ACME, OTHER) for kind in KINDS]

    assert made == [identity_id(tenant, kind, name) for tenant in (ACME, OTHER) for kind in KINDS]
    assert len(set(made)) == 8


@pytest.mark.req("ENG-09")
@given(st.lists(st.sampled_from(["a", "\0", "user", "\ud83d", "\U0010fffe0000"])).map("".join), st.data())
def test_two_names_never_share_an_identity(name: str, data: st.DataObject) -> None:
    other = data.draw(st.lists(st.sampled_from(["a", "\0", "user", "\ud83d", "\U0010fffe0000"])).map("".join))

    assert (identity_id(ACME, "user", name) == identity_id(ACME, "user", other)) == (name == other)


@pytest.mark.req("ENG-09")
def test_an_id_given_back_as_a_name_means_the_same_identity() -> None:
    ann = identity_id(ACME, "user", "ann")

    assert identity_id(ACME, "user", str(ann)) == ann
