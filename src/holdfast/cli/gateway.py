"""`holdfast gateway`: explain why a call is allowed or refused, and manage access rules."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.api import reach
from holdfast.cli.arguments import arguments_of, whole_of
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import Fields, derive, message, moment, page
from holdfast.cli.output import printable, write
from holdfast.core.errors import InvalidInput, NotFound

app = group("Explain why a call is allowed or refused, and manage access rules.")
rules = group("Manage access rules: who may call which tool, with which arguments, when. See docs/policies.md.")
app.add_typer(rules, name="rules")

File = Annotated[str, typer.Argument(metavar="FILE", help="File with rules; - reads stdin.")]

COLUMNS = {
    "name": "NAME",
    "effect": "EFFECT",
    "would": "WOULD REFUSE",
    "rule": "RULE",
}
MARKS = {True: "yes", False: "NO", None: "-"}
VERDICTS = {
    "allowed": "allowed",
    "refused": "refused",
    "asks": "allowed, if a person allows it",
    "depends": "it depends on the arguments",
}


@command(app)
async def explain(
    invocation: Invocation,
    tool: Annotated[str, typer.Argument(metavar="TOOL")],
    words: Annotated[list[str] | None, typer.Argument(metavar="[NAME=VALUE]... | -", show_default=False)] = None,
    user: Annotated[str | None, typer.Option("--as", metavar="USER", help="User who calls it.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Agent that calls it.")] = None,
    key: Annotated[str | None, typer.Option(metavar="ID", help="API key that is used.")] = None,
    scope: Annotated[
        list[str] | None, typer.Option(metavar="SCOPE", help="Scope of the user. Can be repeated.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time of the call. [default: now]", parser=moment)
    ] = None,
    arguments: Annotated[str | None, typer.Option(metavar="JSON", help="All arguments as one JSON object.")] = None,
) -> None:
    """Explain why a call through the gateway is allowed or refused. Without a user, agent or key, it is your own call.

    \b
    holdfast gateway explain --as ann refund order=A-1 amount=500
    holdfast gateway explain --agent support refund
    """
    async with reach(invocation) as api:
        given = whole_of(words or [], arguments)
        if given is None and words:
            try:
                schema: dict[str, Any] = (await api.call("get_tool", name=tool))["parameters"]
            except NotFound:  # one of the engine's own tools, or none
                schema = {}
            given = arguments_of(schema, words)
        inputs = {"user": user, "agent": agent, "key": key, "scopes": scope or None, "arguments": given, "at": at}
        found = await api.call(
            "explain", tool=tool, **{name: value for name, value in inputs.items() if value is not None}
        )
    if invocation.json:
        invocation.output.record(found)
    else:
        write(sys.stdout, printable(format_explanation(found)))


def format_explanation(found: Fields) -> str:
    """Format an explanation: the verdict, each check, and the rules about the call."""
    lines = [f"{found['tool']}: {VERDICTS[found['verdict']]}"]
    if found["verdict"] != "allowed":
        lines.append(f"  {found['why']}")
    lines += ["", *(f"  {MARKS[step['passed']]:<3}  {step['name']:<11}  {step['what']}" for step in found["steps"])]
    if found["rules"]:
        lines += ["", "access rules about it"]
        lines += [f"  {_rule_state(rule)}" for rule in found["rules"]]
    if found["next"]:
        lines += ["", f"To change it: {found['next']}"]
    return "\n".join(lines)


def _rule_state(rule: Fields) -> str:
    state = {True: "matches", False: f"does not match: {rule['unmet']}", None: "depends on the arguments"}
    trial = ", on trial" if rule["on_trial"] else ""
    decides = " (this one decides)" if rule["decides"] else ""
    return f"{rule['name']} ({rule['effect']}{trial}): {state[rule['matches']]}{decides}"


@command(rules, "set")
async def set_(invocation: Invocation, file: File) -> None:
    """Replace all access rules by those of a file. They take effect on every node within a second.

    \b
    holdfast gateway rules text > rules.txt
    holdfast gateway rules test rules.txt
    holdfast gateway rules set rules.txt
    """
    text = _read(file)
    async with reach(invocation) as api:
        stored = await api.call("put_rules", text=text)
    _say_stored(invocation, stored)


@command(rules)
async def add(
    invocation: Invocation,
    rule: Annotated[str, typer.Argument(metavar="RULE", help="Rule, or several lines of rules; - reads stdin.")],
) -> None:
    r"""Add an access rule.

    \b
    holdfast gateway rules add 'large-refunds: deny agent "support" tool "refund" when amount > 100'
    """
    async with reach(invocation) as api:
        stored = await api.call("add_rules", rules=sys.stdin.read() if rule == "-" else rule)
    _say_stored(invocation, stored)


@command(rules, "test")
async def try_rules(
    invocation: Invocation,
    file: File,
    calls: Annotated[int, typer.Option(metavar="N", help="Latest calls to test them on.", min=1, max=10_000)] = 1000,
) -> None:
    """Check the rules of a file without storing them, and list the latest calls that they would decide otherwise."""
    text = _read(file)
    async with reach(invocation) as api:
        found = await api.call("try_rules", text=text, calls=calls)
    if invocation.json:
        invocation.output.record(found)
        return
    shown = [{**each, "would": f"be {'allowed' if each['allowed'] else 'refused'}"} for each in found["changed"]]
    columns = {"at": "AT", "tool": "TOOL", "user": "USER", "agent": "AGENT", "would": "WOULD", "rule": "BY THE RULE"}
    if shown:
        invocation.output.rows(shown, columns)
    for warning in found["warnings"]:
        invocation.output.say(f"Warning: {warning}.")
    invocation.output.say(
        f"{found['rules']:,} rules are valid. They would decide {len(shown):,} of the latest {found['calls']:,} calls "
        "otherwise."
    )


def _list(invocation: Invocation, _: Fields, found: Fields) -> None:
    shown = [
        {
            **rule,
            "effect": f"{rule['effect']}, on trial" if rule["on_trial"] else rule["effect"],
            "would": f"{rule['trial']['calls']:,} calls" if rule["trial"] else "",
            "rule": " ".join(rule["text"].split()).partition(": ")[2],
        }
        for rule in found["rules"]
    ]
    invocation.output.rows(found["rules"] if invocation.json else shown, COLUMNS, cut=["rule"])
    if found["default"] == "deny":
        refused = found["default_trial"]
        count = f" It would have refused {refused['calls']:,} calls." if refused else ""
        trial = f" on trial: calls without an `allow` rule are noted.{count}" if found["default_on_trial"] else "."
        invocation.output.say(f"The default is deny{trial}")


def _show(rule: Fields) -> str:
    lines: list[str] = [rule["text"], ""]
    trial = rule["trial"]
    if rule["on_trial"] and trial is None:
        lines.append("It is on trial, and would have decided no call otherwise.")
    elif trial is not None:
        lines.append(
            f"It is on trial, and would have decided {trial['calls']:,} calls otherwise, last {trial['last_at']}:"
        )
        lines += [f"  {_example(each)}" for each in trial["examples"]]
    return "\n".join(lines).rstrip()


def _example(call: Fields) -> str:
    who = " ".join(filter(None, [call["user"] or "", f"by {call['agent']}" if call["agent"] else ""]))
    return f"{call['at']}  {who or 'nobody'}: {call['tool']}({', '.join(call['arguments'])})"


def _say_stored(invocation: Invocation, stored: Fields) -> None:
    invocation.output.record(stored)
    for warning in stored["warnings"]:
        invocation.output.say(f"Warning: {warning}.")
    count = len(stored["rules"])
    invocation.output.say(
        f"There {'is 1 rule' if count == 1 else f'are {count:,} rules'} now (version {stored['version']})."
    )


def _read(file: str) -> str:
    try:
        return (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the rules in {file} cannot be read", why=str(error)) from None


derive(rules, "ls", "get_rules", _list, help="List access rules, with what those on trial would have refused.")
derive(
    rules,
    "text",
    "get_rules",
    page(lambda found: found["text"].removesuffix("\n")),
    help="Print the text of the access rules, with its comments.",
)
derive(rules, "show", "get_rule", page(_show))
derive(rules, "rm", "remove_rule", message("Removed the rule {name}."))
