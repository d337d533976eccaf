"""Metrics of the log, of memory and of the gateway, in the Prometheus format.

Their labels have the names of tenants, topics and groups. So the scope `admin` gives access to the metrics of the
caller's tenant, and `operator` to those of all tenants.
"""

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.responses import Response

from holdfast.audit.gauges import SealingGauge
from holdfast.bus.gauges import MOST, Gauges
from holdfast.core.ids import TenantId
from holdfast.memory.gauges import ScopeGauge
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("metrics")

BOUND = f"At most {MOST} series, the first by name."

Series = Iterable[tuple[Sequence[str], float]]


class MetricCollector(Collector):
    """Passes measured metrics to a registry."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[Metric]:
        """Return all metrics."""
        return self._families


@operations.declare("GET", "/metrics", needs="somebody", response_format="text/plain")
async def metrics(call: ApiCall) -> Response:
    """Get metrics in the Prometheus format: of the caller's tenant, or for an operator of all tenants."""
    caller = call.principal
    if "operator" not in caller.scopes:
        caller.require("admin")
    tenant = None if "operator" in caller.scopes else caller.tenant
    gauges = call.engine.log_gauges(tenant)
    registry = CollectorRegistry()
    memories = await call.engine.memory_gauges.scopes(tenant)
    families = [*await _families(gauges), *_memory_families(memories)]
    if tenant is None:  # it counts the sockets of all tenants
        open = GaugeMetricFamily("holdfast_sockets", "Open WebSockets of this process.", call.slot.sockets)
        families.append(open)
        assert call.caller_session is not None
        about = "Requests to this process whose callers were not authenticated."
        families.append(CounterMetricFamily("holdfast_rejected_requests", about, value=call.caller_session.rejected))
    families.append(_audit_family(await call.engine.audit_gauges.sealing(tenant)))
    families += [await _envelope_family(call, tenant), await _unrecorded_family(call, tenant)]
    families.append(await _trials_family(call, tenant))
    families += await _quota_families(call, tenant)
    registry.register(MetricCollector(families))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


async def _families(gauges: Gauges) -> list[Metric]:
    topics, groups, letters = await gauges.topics(), await gauges.groups(), await gauges.dead_letters()
    commands = await gauges.commands()
    by_topic, by_group, by_state = ("tenant", "topic"), ("tenant", "group", "topic"), ("tenant", "skill", "state")
    records = CounterMetricFamily("holdfast_topic_records", f"Records published to a topic. {BOUND}", labels=by_topic)
    return [
        _fill(records, (((one.tenant, one.topic), one.records) for one in topics)),
        _gauge(
            "holdfast_topic_records_per_second",
            "Rate of the latest records of a topic, up to a thousand per partition.",
            by_topic,
            (((one.tenant, one.topic), one.per_second) for one in topics),
        ),
        _gauge(
            "holdfast_group_lag",
            "Unread records of a consumer group.",
            by_group,
            (((one.tenant, one.group, one.topic), one.lag) for one in groups),
        ),
        _gauge(
            "holdfast_group_oldest_unread_seconds",
            "Age of the oldest unread record of a consumer group, 0 if there is none.",
            by_group,
            (((one.tenant, one.group, one.topic), one.age) for one in groups),
        ),
        _gauge(
            "holdfast_dead_letters",
            "Dead letters to redrive or drop.",
            by_group,
            (((one.tenant, one.group, one.topic), one.letters) for one in letters),
        ),
        _gauge(
            "holdfast_commands",
            "Queued and running commands.",
            by_state,
            (((one.tenant, one.skill, one.state), one.commands) for one in commands),
        ),
    ]


def _memory_families(scopes: Sequence[ScopeGauge]) -> list[Metric]:
    by_scope = ("tenant", "scope")
    all_of_them = (((one.tenant, one.scope), one.memories) for one in scopes)
    unembedded = (((one.tenant, one.scope), one.unembedded) for one in scopes)
    return [
        _gauge("holdfast_memories", "Memories of a memory scope.", by_scope, all_of_them),
        _gauge(
            "holdfast_memories_unembedded",
            "Memories of a memory scope that have no vector of their embedding model yet.",
            by_scope,
            unembedded,
        ),
    ]


def _audit_family(gauges: Sequence[SealingGauge]) -> Metric:
    series = (((one.tenant,), one.seconds) for one in gauges)
    about = "For how long the oldest entry of the audit has waited to be sealed, 0 if none waits."
    return _gauge("holdfast_audit_unsealed_seconds", about, ("tenant",), series)


async def _envelope_family(call: ApiCall, tenant: TenantId | None) -> Metric:
    counts = call.gateways.envelope_calls.counts(tenant)
    names = await _names(call, {id for id, _ in counts})
    about = "Calls to this process with the deprecated envelope before JSON-RPC."
    family = CounterMetricFamily("holdfast_envelope_calls", about, labels=("tenant", "service"))
    return _fill(family, (((names[id], method), count) for (id, method), count in sorted(counts.items())))


async def _unrecorded_family(call: ApiCall, tenant: TenantId | None) -> Metric:
    counts = await call.engine.call_records.dropped(tenant)
    names = await _names(call, counts)
    about = "Calls through the gateway of this process that have no row: too many waited, or the database was away."
    family = CounterMetricFamily("holdfast_unrecorded_calls", about, labels=("tenant",))
    return _fill(family, (((names[id],), count) for id, count in sorted(counts.items())))


async def _trials_family(call: ApiCall, tenant: TenantId | None) -> Metric:
    counts = call.engine.rule_trials.counts(tenant)
    names = await _names(call, {id for id, _ in counts})
    about = "Calls in this process that an access rule on trial would have decided otherwise."
    family = CounterMetricFamily("holdfast_rule_trials", about, labels=("tenant", "rule"))
    return _fill(family, (((names[id], rule), count) for (id, rule), count in sorted(counts.items())))


async def _quota_families(call: ApiCall, tenant: TenantId | None) -> Sequence[Metric]:
    quotas, by_limit = call.engine.shared_quotas, ("tenant", "limit")
    refusals, warnings = quotas.refusals(tenant), quotas.warnings(tenant)
    names = await _names(call, {id for id, _ in (*refusals, *warnings)})
    return [
        _fill(
            CounterMetricFamily(name, f"{about} {BOUND}", labels=by_limit),
            sorted(((names[id], _shown(limit)), count) for (id, limit), count in counts.items())[:MOST],
        )
        for name, about, counts in (
            ("holdfast_limit_refusals", "Calls that a rate limit or a budget refused in this process.", refusals),
            ("holdfast_budget_warnings", "Budgets of which most was spent, as this process has noticed.", warnings),
        )
    ]


def _shown(name: str) -> str:
    """Return a name without lone surrogates, which the format cannot contain."""
    return name.encode(errors="replace").decode()


async def _names(call: ApiCall, tenants: Iterable[TenantId]) -> Mapping[TenantId, str]:
    return {id: (await call.engine.tenants.get(id)).name for id in tenants}


def _gauge(name: str, about: str, labels: Sequence[str], series: Series) -> Metric:
    return _fill(GaugeMetricFamily(name, f"{about} {BOUND}", labels=labels), series)


def _fill(family: CounterMetricFamily | GaugeMetricFamily, series: Series) -> Metric:
    for labels, value in series:
        family.add_metric(labels, value)
    return family
