"""Names of tools. They are stable: a name depends on its operation, not on others or on their order.

    GET /customers/{id}                     get_customers_by_id
    GET /orders/{id}/items/{item}           get_orders_by_id_items_by_item
    POST /v1/pay-outs:cancel                post_v1_pay_outs_cancel

A name has the method in lower case, then the parts of the path. A parameter is `by_` and its name. Characters other
than a-z, A-Z and digits become one `_`. Operations of one document with the same name each get `_` and six hexadecimal
digits of the SHA-256 of `METHOD /path`. A name of more than 64 characters is cut at a `_` and gets them, too.
Operations that are not chosen also count, so choosing more of them renames none.

Arguments keep their names. Characters that models' APIs do not accept (all but letters, digits, `_`, `.` and `-`)
become `_`. If several places have the same name, the first keeps it, in the order path, query, header, cookie, body.
The others get the place as a suffix: `id`, `id_query`, `id_body`.
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
    """Return the tool names of a document's operations (method and path), by `METHOD /path`."""
    plain = {f"{method} {path}": _plain(method, path) for method, path in operations}
    shared = Counter(plain.values())
    return {
        key: _add_digest(name, key) if shared[name] > 1 or len(name) > MAX_NAME else name for key, name in plain.items()
    }


def argument_name(name: str, place: str, taken: Collection[str]) -> str:
    """Return the argument's name for a `name` in a `place`, different from those in `taken`."""
    fit = _UNFIT_ARGUMENT.sub("_", name)
    if fit != name:
        fit = fit.strip("_") or "argument"
    for candidate in (fit, f"{fit}_{place}"):
        if len(candidate) <= MAX_NAME and candidate not in taken:
            return candidate
    return _add_digest(fit, f"{place} {name}")


def _plain(method: str, path: str) -> str:
    words = _UNFIT.sub("_", _PARAMETER.sub(r"/by_\1/", path)).strip("_")
    return f"{method.lower()}_{words}" if words else method.lower()


def _add_digest(name: str, key: str) -> str:
    digest = hashlib.sha256(key.encode()).hexdigest()[:6]
    longest = MAX_NAME - len(digest) - 1
    if len(name) > longest:
        cut, _, _ = name[: longest + 1].rpartition("_")
        name = cut if len(cut) > longest // 2 else name[:longest]
    return f"{name.rstrip('_')}_{digest}"
