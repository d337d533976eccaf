"""Security requirements of an operation: alternative schemes for which a secret can be sent."""

from typing import Any, cast

from holdfast.skills.request import AuthScheme
from holdfast.skills.sources.openapi.references import References, UnusablePart

Alternatives = tuple[tuple[AuthScheme, ...], ...]


class Security:
    """Reads the security requirements of one document."""

    def __init__(self, root: dict[str, Any], references: References, *, swagger: bool) -> None:
        self._references = references
        self._home = "securityDefinitions" if swagger else "components.securitySchemes"
        place: Any = root if swagger else root.get("components")
        schemes: Any = (
            cast(dict[str, Any], place).get(self._home.rpartition(".")[2]) if isinstance(place, dict) else None
        )
        self._schemes = cast(dict[str, Any], schemes if isinstance(schemes, dict) else {})
        self._default: Any = root.get("security")

    def alternatives(self, operation: dict[str, Any], path: str) -> tuple[Alternatives, list[str]]:
        """Return the alternatives of an operation at `path`, and notes about those that were left out.

        Raise UnusablePart if none is left.
        """
        requirements: Any = operation.get("security", self._default)
        if not isinstance(requirements, list) or not requirements:
            return (), []
        found: list[tuple[AuthScheme, ...]] = []
        errors: list[UnusablePart] = []
        for alternative in cast(list[Any], requirements):
            try:
                found.append(self._schemes_of(alternative, path))
            except UnusablePart as error:
                errors.append(error)
        if not found:
            raise errors[0]
        return tuple(dict.fromkeys(found)), [f"{error.path}: {error.reason}" for error in errors]

    def _schemes_of(self, alternative: Any, path: str) -> tuple[AuthScheme, ...]:
        if not isinstance(alternative, dict):
            raise UnusablePart(f"{path}.security", "an alternative is not an object")
        return tuple(self._scheme(name, path) for name in cast(dict[str, Any], alternative))

    def _scheme(self, name: str, path: str) -> AuthScheme:
        if name not in self._schemes:
            raise UnusablePart(f"{path}.security", f"the document has no security scheme {name!r}")
        definition, place = self._references.follow(self._schemes[name], f"{self._home}.{name}")
        match definition:
            case {"type": "apiKey", "in": "header" | "query" | "cookie" as kind, "name": str(parameter)}:
                return AuthScheme(name, kind, parameter)
            case {"type": "basic"}:
                return AuthScheme(name, "basic")
            case {"type": "http", "scheme": str(scheme)} if scheme.lower() == "basic":
                return AuthScheme(name, "basic")
            case {"type": "http", "scheme": str(scheme)} if scheme.lower() == "bearer":
                return AuthScheme(name, "bearer")
            case {"type": "oauth2" | "openIdConnect"}:
                return AuthScheme(name, "bearer")
            case _:
                kind = " ".join(
                    str(definition[key]) for key in ("type", "scheme") if isinstance(definition.get(key), str)
                )
                raise UnusablePart(place, f"its kind of security is not supported: {kind or 'none'}")
