"""Rate limits and spending budgets of tenants, users, agents, keys and tools, shared by all processes.

A limit is a text, such as `each user: 60 requests per minute` (`limit.py`). `Quotas` admits or refuses calls of a
tenant by its limits: requests and concurrent calls from tokens and slots that this process has leased
(`rate_limits.py`), and what model calls spend by reservations (`budgets.py`).
"""

from holdfast.quotas.budgets import Reservation, Spend
from holdfast.quotas.composition import Quotas, SharedQuotas, open_quotas
from holdfast.quotas.limit import UsageLimit, parse_limit
from holdfast.quotas.rate_limits import AdmittedCall

__all__ = ["AdmittedCall", "Quotas", "Reservation", "SharedQuotas", "Spend", "UsageLimit", "open_quotas", "parse_limit"]
