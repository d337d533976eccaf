"""Tools that call HTTP back ends.

`requests` builds the request of a call, and `styles` and `bodies` encode its arguments. `responses` reads the answer
and converts it for the model. `HttpRunner` makes the call.
"""

from holdfast.execution.rest.runner import HttpRunner

__all__ = ["HttpRunner"]
