from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidInput
from holdfast.skills.arguments import check
from holdfast.skills.overlays import apply_configs, check_config, check_values
from holdfast.skills.tool import Tool

pytestmark = pytest.mark.req("SKILL-01")

NOTHING: dict[str, Any] = {}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "region": {"type": "string", "enum": ["eu", "us"]},
        "days": {"type": "integer", "default": 3},
        "any": True,
    },
    "required": ["city", "region", "days"],
    "additionalProperties": False,
}
FORECAST = Tool("forecast", "The weather to come.", SCHEMA, kind="rest", timeout=9)


def test_without_a_config_a_tool_is_as_it_is() -> None:
    shown, overlay = apply_configs(FORECAST, {}, {})

    assert shown is FORECAST
    assert overlay.apply({"city": "Rome"}) == {"city": "Rome"}


def test_a_fixed_argument_is_not_told_and_holds_whatever_the_model_writes() -> None:
    shown, overlay = apply_configs(FORECAST, {"arguments": {"region": "eu"}})

    assert list(shown.parameters["properties"]) == ["city", "days", "any"]
    assert shown.parameters["required"] == ["city", "days"]
    assert overlay.apply({"city": "Rome", "region": "us"}) == {"city": "Rome", "region": "eu"}
    assert "region" in FORECAST.parameters["properties"]


def test_a_default_is_told_and_the_model_may_say_otherwise() -> None:
    shown, overlay = apply_configs(FORECAST, {"defaults": {"days": 5, "any": [1]}})

    assert shown.parameters["properties"]["days"] == {"type": "integer", "default": 5}
    assert shown.parameters["properties"]["any"] == {"default": [1]}
    assert shown.parameters["required"] == ["city", "region"]
    assert overlay.apply({"days": 1}) == {"days": 1, "any": [1]}


def test_an_agent_s_config_goes_over_that_of_the_skill() -> None:
    of_the_skill = {"arguments": {"region": "eu"}, "defaults": {"days": 5, "region": "us"}, "timeout": 20}
    of_the_agent = {"arguments": {"region": "us", "unknown": 1}, "defaults": {"days": 7}, "timeout": 30}

    shown, overlay = apply_configs(FORECAST, of_the_skill, of_the_agent)

    assert shown.timeout == 30
    assert overlay.apply({}) == {"region": "us", "days": 7}


@pytest.mark.req("AGENT-05")
@pytest.mark.parametrize(
    ("tool", "configs", "approve"),
    [
        (False, [NOTHING], False),
        (False, [{"approve": True}, NOTHING], True),
        (False, [NOTHING, {"approve": True}], True),
        (False, [{"approve": True}, {"approve": False}], True),
        (True, [{"approve": False}], True),
    ],
)
def test_an_approval_can_be_asked_for_and_not_waived(tool: bool, configs: list[dict[str, Any]], approve: bool) -> None:
    shown, _ = apply_configs(Tool("t", "", {}, approve=tool), *configs)

    assert shown.approve is approve


def test_rules_about_arguments_that_the_model_does_not_see_are_not_told() -> None:
    either = {"anyOf": [{"required": ["id"]}, {"required": ["city"]}], "dependentRequired": {"zip": ["city"]}}
    tool = Tool("t", "", {"properties": {"id": {}, "city": {}, "zip": {}}, **either})

    shown, overlay = apply_configs(tool, {"arguments": {"id": 7}})

    assert shown.parameters["properties"] == {"city": {}, "zip": {}}
    assert "anyOf" not in shown.parameters
    assert shown.parameters["dependentRequired"] == {"zip": ["city"]}
    assert check(tool, overlay.apply({})) == {"id": 7}
    assert check(shown, {}) == {}


def test_what_is_fixed_is_no_call_s_own() -> None:
    for key in ("arguments", "defaults"):
        _, overlay = apply_configs(FORECAST, {key: {"any": [1]}})

        overlay.apply({})["any"].append(2)

        assert overlay.apply({}) == {"any": [1]}


VALUES = {"city": st.text(), "region": st.sampled_from(["eu", "us"]), "days": st.integers(), "any": st.integers()}
ARGUMENTS = st.fixed_dictionaries({}, optional={**VALUES, "more": st.integers()})
CONFIGS = st.fixed_dictionaries({}, optional={"arguments": ARGUMENTS, "defaults": ARGUMENTS})


@given(CONFIGS, CONFIGS, ARGUMENTS)
def test_every_argument_is_fixed_or_given_or_has_its_default(
    skill: dict[str, Any], agent: dict[str, Any], given: dict[str, Any]
) -> None:
    shown, overlay = apply_configs(FORECAST, skill, agent)

    called = overlay.apply(given)

    known = {name: value for name, value in called.items() if name in SCHEMA["properties"]}
    for name, value in known.items():
        assert value == overlay.fixed.get(name, given.get(name, overlay.defaults.get(name)))
    assert not overlay.fixed.keys() & shown.parameters["properties"].keys()
    assert given.keys() <= called.keys()


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize(
    ("config", "said"),
    [
        ([], "it is not an object"),
        ({"argument": {}}, "the key `argument` is unknown"),
        ({"arguments": []}, "`arguments` is not an object"),
        ({"defaults": 1}, "`defaults` is not an object"),
        ({"timeout": 0}, "`timeout` cannot be 0"),
        ({"timeout": True}, "`timeout` cannot be True"),
        ({"timeout": 1e9}, "`timeout` cannot be 1000000000.0"),
        ({"timeout": float("nan")}, "`timeout` cannot be nan"),
        ({"approve": "yes"}, "`approve` cannot be 'yes'"),
        (
            {"arguments": {"town": 1}},
            "the tool forecast has no argument `town`; its arguments: city, region, days, any",
        ),
        ({"arguments": {"region": "asia"}}, "`arguments.region` does not match the schema of the tool forecast"),
        ({"defaults": {"days": "3"}}, "`defaults.days` does not match the schema of the tool forecast"),
    ],
)
def test_a_config_that_cannot_be_used_is_refused(config: object, said: str) -> None:
    with pytest.raises(InvalidInput, match="the config of the skill is invalid") as refused:
        check_values(FORECAST, check_config(config), all=True)

    assert said in str(refused.value)


def test_a_config_that_is_for_no_one_tool_may_name_any_argument() -> None:
    config = {"arguments": {"town": 1}, "timeout": 1.5, "approve": False}

    assert check_config(config) == config
    check_values(FORECAST, config)


@pytest.mark.req("SKILL-06")
def test_what_is_fixed_and_does_not_fit_is_refused_and_never_the_model_s_to_choose() -> None:
    with pytest.raises(InvalidInput, match=r"`arguments.days` does not match the schema of the tool forecast"):
        apply_configs(FORECAST, {}, {"arguments": {"days": "a week"}})


def test_a_default_that_does_not_fit_is_left_out() -> None:
    shown, overlay = apply_configs(FORECAST, {"defaults": {"days": "a week", "city": "Rome"}})

    assert shown.parameters["properties"]["days"] == {"type": "integer", "default": 3}
    assert overlay.apply({}) == {"city": "Rome"}
