"""The gateways of all tenants, each created on first use."""

from collections import OrderedDict

from holdfast.app import App
from holdfast.core.ids import TenantId
from holdfast.engine import Engine
from holdfast.gateway.builtin import own_tools
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.inventory import Inventory
from holdfast.gateway.jsonrpc.envelopes import EnvelopeCalls
from holdfast.gateway.offerings import Offerings

REMEMBERED = 1000  # cached gateways


class Gateways:
    """Creates and caches the gateway of each tenant; `app` is the app that this process serves, if any."""

    def __init__(self, engine: Engine, app: App | None = None) -> None:
        self._engine = engine
        self.app = app
        self.envelope_calls = EnvelopeCalls()
        self._known: OrderedDict[TenantId, Gateway] = OrderedDict()
        if app is not None:
            for name in (engine.config.tenant, *engine.config.agents.tenants):
                app.add_publisher(engine.tenant(name))

    def of(self, tenant: TenantId) -> Gateway:
        """Return the gateway of a tenant."""
        found = self._known.get(tenant)
        if found is None:
            engine = self._engine.tenant(tenant)
            offerings = Offerings(engine, self.app)
            found = self._known[tenant] = Gateway(engine, Inventory(engine, own_tools(engine)), offerings)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        self._known.move_to_end(tenant)
        return found
