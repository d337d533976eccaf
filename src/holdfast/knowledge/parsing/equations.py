"""Equations of Office files (OMML) as LaTeX."""

from collections.abc import Callable

from holdfast.knowledge.parsing.equation_symbols import ACCENTS, COMMANDS, FUNCTIONS, GROUPS, PLAIN
from holdfast.knowledge.parsing.safe_xml import NAMES, Element, child, children, own

PROPERTIES = frozenset({"m:ctrlPr", "m:rPr", "w:rPr"})
DELETED = frozenset({"w:del", "w:moveFrom"})


def latex(element: Element) -> str:
    """An `m:oMath` as LaTeX, without dollar signs. Its depth is bounded by that of the XML."""
    return _sequence(element).strip()


def symbols(text: str) -> str:
    """Text of an equation: Greek letters and operators by their names."""
    found: list[str] = []
    for each in text:
        name = COMMANDS.get(each)
        found.append(f" \\{name} " if name else PLAIN.get(each, each))
    return "".join(found).replace("  ", " ")


def _sequence(element: Element | None) -> str:
    return "".join(map(_one, element if element is not None else ()))


def _one(element: Element) -> str:
    name = NAMES[element.tag]
    if name in PROPERTIES or name in DELETED or name.endswith("Pr"):
        return ""
    convert = CONVERTERS.get(name)
    return convert(element) if convert else _sequence(element)


def _run(element: Element) -> str:
    text = "".join(each.text or "" for each in element if NAMES[each.tag] in {"m:t", "w:t"})
    plain = child(element, "m:rPr", "m:nor") is not None
    if plain and any(each.isalpha() for each in text):
        return f"\\text{{{text}}}"
    return symbols(text)


def _property(element: Element, *names: str) -> str | None:
    """A property's value: None without the property, empty without a value."""
    found = child(element, f"{NAMES[element.tag]}Pr", *names)
    return None if found is None else own(found, "val") or ""


def _part(element: Element, name: str) -> str:
    return _sequence(child(element, name)).strip()


def _base(element: Element) -> str:
    """What carries a superscript: braces keep a fraction or a root together."""
    inner = child(element, "m:e")
    text = _part(element, "m:e")
    compound = inner is not None and any(NAMES[each.tag] not in {"m:r", "m:d", *PROPERTIES} for each in inner)
    return f"{{{text}}}" if compound else text


def _fraction(element: Element) -> str:
    top, bottom = _part(element, "m:num"), _part(element, "m:den")
    match _property(element, "m:type"):
        case "noBar":
            return f"\\genfrac{{}}{{}}{{0pt}}{{}}{{{top}}}{{{bottom}}}"
        case "lin" | "skw":
            return f"{top}/{bottom}"
        case _:
            return f"\\frac{{{top}}}{{{bottom}}}"


def _superscript(element: Element) -> str:
    return f"{_base(element)}^{{{_part(element, 'm:sup')}}}"


def _subscript(element: Element) -> str:
    return f"{_base(element)}_{{{_part(element, 'm:sub')}}}"


def _both(element: Element) -> str:
    return f"{_base(element)}_{{{_part(element, 'm:sub')}}}^{{{_part(element, 'm:sup')}}}"


def _before(element: Element) -> str:
    return f"{{}}_{{{_part(element, 'm:sub')}}}^{{{_part(element, 'm:sup')}}}{_base(element)}"


def _nary(element: Element) -> str:
    sign = symbols(_property(element, "m:chr") or "∫").strip()
    return f"{sign}_{{{_part(element, 'm:sub')}}}^{{{_part(element, 'm:sup')}}}{_part(element, 'm:e')}"


def _radical(element: Element) -> str:
    degree = _part(element, "m:deg")
    return f"\\sqrt{f'[{degree}]' if degree else ''}{{{_part(element, 'm:e')}}}"


def _delimited(element: Element) -> str:
    begin, end = _property(element, "m:begChr"), _property(element, "m:endChr")
    separator = _property(element, "m:sepChr")
    inner = symbols("|" if separator is None else separator).join(_sequence(each) for each in children(element, "m:e"))
    opening = symbols("(" if begin is None else begin).strip() or "."
    closing = symbols(")" if end is None else end).strip() or "."
    return f"\\left{opening}{inner}\\right{closing}"


def _function(element: Element) -> str:
    name, argument = _part(element, "m:fName"), _part(element, "m:e")
    if name in FUNCTIONS:
        name = f"\\{name}"
    elif name.isalpha():
        name = f"\\operatorname{{{name}}}"
    argument = argument if argument.startswith(("\\left", "(")) else f"({argument})" if argument else ""
    return name + argument


def _lower_limit(element: Element) -> str:
    return _limit(element, "_", "underset")


def _upper_limit(element: Element) -> str:
    return _limit(element, "^", "overset")


def _limit(element: Element, sign: str, command: str) -> str:
    base, limit = _part(element, "m:e"), _part(element, "m:lim")
    if base in FUNCTIONS:
        return f"\\{base}{sign}{{{limit}}}"
    if base.isalpha() and len(base) > 1:
        return f"\\operatorname{{{base}}}{sign}{{{limit}}}"
    if base.startswith(("\\underbrace", "\\overbrace", "\\sum", "\\prod")):
        return f"{base}{sign}{{{limit}}}"
    return f"\\{command}{{{limit}}}{{{base}}}"


def _accent(element: Element) -> str:
    name = ACCENTS.get(_property(element, "m:chr") or "\u0302", "hat")
    return f"\\{name}{{{_part(element, 'm:e')}}}"


def _bar(element: Element) -> str:
    name = "overline" if _property(element, "m:pos") == "top" else "underline"
    return f"\\{name}{{{_part(element, 'm:e')}}}"


def _group(element: Element) -> str:
    sign = _property(element, "m:chr")
    name = GROUPS.get("⏟" if sign is None else sign)
    if name is None:
        command = "overset" if _property(element, "m:pos") == "top" else "underset"
        return f"\\{command}{{{symbols(sign or '').strip()}}}{{{_part(element, 'm:e')}}}"
    return f"\\{name}{{{_part(element, 'm:e')}}}"


def _boxed(element: Element) -> str:
    return f"\\boxed{{{_part(element, 'm:e')}}}"


def _array(element: Element) -> str:
    lines = [_sequence(each).strip() for each in children(element, "m:e")]
    return lines[0] if len(lines) == 1 else "\\begin{array}{c}" + " \\\\ ".join(lines) + "\\end{array}"


def _matrix(element: Element) -> str:
    rows = (" & ".join(_sequence(each).strip() for each in children(row, "m:e")) for row in children(element, "m:mr"))
    return "\\begin{matrix}" + " \\\\ ".join(rows) + "\\end{matrix}"


CONVERTERS: dict[str, Callable[[Element], str]] = {
    "m:r": _run,
    "m:f": _fraction,
    "m:sSup": _superscript,
    "m:sSub": _subscript,
    "m:sSubSup": _both,
    "m:sPre": _before,
    "m:nary": _nary,
    "m:rad": _radical,
    "m:d": _delimited,
    "m:func": _function,
    "m:limLow": _lower_limit,
    "m:limUpp": _upper_limit,
    "m:acc": _accent,
    "m:bar": _bar,
    "m:groupChr": _group,
    "m:borderBox": _boxed,
    "m:eqArr": _array,
    "m:m": _matrix,
}
