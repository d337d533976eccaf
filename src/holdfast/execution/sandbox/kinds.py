"""Says which kinds of tools run in this process: those with a runner, and scripts that the sandbox can hold."""

from collections.abc import Collection

from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.execution.sandbox.languages import LANGUAGES
from holdfast.execution.sandbox.probe import SandboxProbe
from holdfast.skills.tool import Kind


class InstalledKinds:
    """Kinds that always run, and scripts, for which the sandbox is tried when the first of them is registered.

    Until then, scripts of a language count as runnable. No call runs before the sandbox has been tried.
    """

    def __init__(self, always: Collection[Kind], probe: SandboxProbe) -> None:
        self._always = always
        self._probe = probe

    def __call__(self, kind: Kind) -> bool:
        """Whether tools of a kind run, as far as it is known."""
        if kind not in LANGUAGES:
            return kind in self._always
        verdict = self._probe.known(kind)
        return verdict is None or verdict.runs

    async def refusal(self, kind: Kind) -> HoldfastError | None:
        """Return why tools of a kind do not run, or None."""
        if kind not in LANGUAGES:
            return None
        try:
            await self._probe.check(kind)
        except Unavailable as error:
            return error
        return None
