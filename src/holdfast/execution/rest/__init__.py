"""Tools that are HTTP back ends.

`requests` says what is sent for a call, and `styles` and `bodies` how its arguments are written; `responses` reads
what comes back and tells it; `RestRunner` does it.
"""

from holdfast.execution.rest.runner import RestRunner

__all__ = ["RestRunner"]
