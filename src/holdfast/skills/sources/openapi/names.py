"""Names of tools, by rules that keep them stable: a name depends on the operation, not on others or on their order.

    GET /customers/{id}                     get_customers_by_id
    GET /orders/{id}/items/{item}           get_orders_by_id_items_by_item
    POST /v1/pay-outs:cancel                post_v1_pay_outs_cancel

The method in lower case, then the parts of the path; a parameter is `by_` and its name; whatever is no letter of a-z
and A-Z and no digit becomes one `_`. Operations whose names are the same in one document each get `_` and six
hexadecimal digits of the SHA-256 of `METHOD /path`; a name of more than 64 characters is cut at a `_` and gets them,
too. Operations that are not chosen count for this as well: choosing more of them renames none.

Arguments keep their names; what models' APIs do not take in them (all but letters, digits, `_`, `.` and `-`) becomes
`_`. Of the same name in several places the first keeps it, in the order path, query, header, cookie, body; the others
get the place: `id`, `id_query`, `id_body`.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable

MAX_NAME = 64

_PARAMETER = re.compile(r"\{([^{}]*)\}")
_UNFIT = re.compile(r"[^a-zA-Z0-9]+")
_UNFIT_ARGUMENT = re.compile(r"[^a-zA-Z0-9_.-]+")


def tool_names(operations: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The tool's name of each operation of a document, given by method and path, by its key `METHOD /path`."""
    plain = {f"{method} {path}": _plain(method, path) for method, path in operations}
    shared = Counter(plain.values())
    return {
        key: _marked(name, key) if shared[name] > 1 or len(name) > MAX_NAME else name for key, name in plain.items()
    }


def argument_name(name: str, place: str, taken: Collection[str]) -> str:
    """What the argument is called that goes to a `place` by a `name`, when others are `taken`."""
    fit = _UNFIT_ARGUMENT.sub("_", name)
    if fit != name:
        fit = fit.strip("_") or "argument"
    for candidate in (fit, f"{fit}_{place}"):
        if len(candidate) <= MAX_NAME and candidate not in taken:
            return candidate
    return _marked(fit, f"{place} {name}")


def _plain(method: str, path: str) -> str:
    words = _UNFIT.sub("_", _PARAMETER.sub(r"/by_\1/", path)).strip("_")
    return f"{method.lower()}_{words}" if words else method.lower()


def _marked(name: str, key: str) -> str:
    digest = hashlib.sha256(key.encode()).hexdigest()[:6]
    longest = MAX_NAME - len(digest) - 1
    if len(name) > longest:
        cut, _, _ = name[: longest + 1].rpartition("_")
        name = cut if len(cut) > longest // 2 else name[:longest]
    return f"{name.rstrip('_')}_{digest}"
