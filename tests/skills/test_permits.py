from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidInput
from holdfast.skills.permissions import CAPS, allows_users, check_permissions, refusal_reason
from holdfast.skills.tool import LEVELS, Access

pytestmark = pytest.mark.req("SKILL-07")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("access", LEVELS)
def test_a_skill_grants_its_level_and_those_below(access: Access, level: Access) -> None:
    assert (refusal_reason(access, level, {}, "support") == "") is (LEVELS.index(level) >= LEVELS.index(access))


@pytest.mark.parametrize(
    ("permissions", "agent", "allowed"),
    [
        ({}, "support", True),
        ({"default": "write"}, "support", True),
        ({"default": "read"}, "support", False),
        ({"default": "none"}, "support", False),
        ({"default": "none", "agents": {"support": "execute"}}, "support", True),
        ({"default": "execute", "agents": {"support": "read"}}, "support", False),
        ({"agents": {"guest": "none"}}, "guest", False),
        ({"agents": {"guest": "none"}}, "support", True),
    ],
)
def test_permissions_cap_what_an_agent_may_do(permissions: dict[str, Any], agent: str, allowed: bool) -> None:
    assert (refusal_reason("write", "execute", permissions, agent) == "") is allowed


PERMISSIONS = st.fixed_dictionaries(
    {},
    optional={
        "default": st.sampled_from(CAPS),
        "agents": st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(CAPS)),
    },
)


@given(st.sampled_from(LEVELS), st.sampled_from(LEVELS), PERMISSIONS)
def test_permissions_never_allow_what_the_skill_does_not(
    access: Access, level: Access, permissions: dict[str, Any]
) -> None:
    alone, capped = refusal_reason(access, level, {}, "a"), refusal_reason(access, level, permissions, "a")

    assert not alone or capped
    assert check_permissions(permissions) == permissions


@pytest.mark.parametrize(
    ("level", "permissions", "said"),
    [
        ("read", {}, "it requires the access write, and the skill grants only read. Continue without it."),
        ("write", {"default": "read"}, "it requires the access write, and support has only read."),
        ("write", {"default": "none"}, "it requires the access write, and support has no access."),
    ],
)
def test_the_model_reads_why_it_may_not(level: Access, permissions: dict[str, Any], said: str) -> None:
    assert refusal_reason("write", level, permissions, "support").startswith(said)


@pytest.mark.req("SAFE-04")
@pytest.mark.parametrize(
    "permissions", [{"default": "admin"}, {"default": 7}, {"agents": []}, {"agents": {"support": ["read"]}}]
)
def test_what_cannot_be_read_allows_nothing(permissions: dict[str, Any]) -> None:
    assert refusal_reason("read", "execute", permissions, "support") != ""


@pytest.mark.req("SKILL-07", "SAFE-04")
@pytest.mark.parametrize(
    ("permissions", "opened"),
    [
        ({}, []),
        ({"default": "execute", "agents": {"users": "execute"}}, []),
        ({"users": "none"}, []),
        ({"users": "read"}, ["read"]),
        ({"users": "execute", "default": "none"}, ["read", "write", "execute"]),
        ({"users": "all"}, []),
        ({"users": ["execute"]}, []),
    ],
)
def test_users_call_by_hand_what_is_opened_to_them(permissions: dict[str, Any], opened: list[str]) -> None:
    assert [access for access in LEVELS if allows_users(access, permissions)] == opened


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize(
    ("permissions", "said"),
    [
        ([], "they are not an object"),
        ({"support": "read"}, "the key `support` is unknown"),
        ({"default": "admin"}, "the value 'admin' of `default` is unknown"),
        ({"default": ["read"]}, "of `default` is unknown"),
        ({"agents": []}, "`agents` is not an object"),
        ({"agents": {"support": None}}, "the value None of `agents.support` is unknown"),
        ({"users": "admin"}, "the value 'admin' of `users` is unknown"),
    ],
)
def test_permissions_that_say_nothing_are_refused(permissions: object, said: str) -> None:
    with pytest.raises(InvalidInput, match="the permissions of the tool are invalid") as refused:
        check_permissions(permissions)

    assert said in str(refused.value)
    assert "with the values none, read, write, execute" in str(refused.value)
