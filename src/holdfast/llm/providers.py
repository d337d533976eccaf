"""The kinds of models, and how the name of a model selects one."""

from pathlib import Path

from pydantic import SecretStr

from holdfast.core.errors import BadSetting
from holdfast.core.settings import MODEL_FORMS, LlmSettings
from holdfast.llm.anthropic import AnthropicModel
from holdfast.llm.endpoint import Connections, ModelEndpoint
from holdfast.llm.model import Model
from holdfast.llm.offline import OfflineModel
from holdfast.llm.openai import OpenAiModel
from holdfast.llm.scripted import ScriptedModel

ADDRESSES = {
    "openai": "https://api.openai.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "ollama": "http://127.0.0.1:11434/v1",
}
OFFLINE = OfflineModel.name
ANTHROPIC_VERSION = "2023-06-01"


def open_model(name: str, settings: LlmSettings, connections: Connections) -> Model:
    """Return the model with a name, or raise BadSetting. A missing key is reported when the model is called.

    `llm.base_url` and `llm.api_key` apply to all models of the provider of `llm.model`, and to no others.
    """
    kind, colon, rest = name.partition(":")
    if name == OFFLINE:
        return OfflineModel()
    if kind == "scripted" and rest:
        return ScriptedModel(Path(rest), name=name)
    if kind not in ADDRESSES or not rest.strip() or not colon:
        raise BadSetting(f"unknown model {name!a}", next=f"Use a name like {MODEL_FORMS}.", key="llm.model")
    ours = kind == settings.model.partition(":")[0]
    address = settings.base_url if ours and settings.base_url else ADDRESSES[kind]
    key, key_settings = _key(kind, settings, ours=ours)
    if kind == "anthropic":
        address = address if address.endswith("/v1") else f"{address}/v1"
        endpoint = ModelEndpoint(
            f"{address}/messages",
            model=name,
            connections=connections,
            key=key,
            key_header="x-api-key",
            key_settings=key_settings,
            headers={"anthropic-version": ANTHROPIC_VERSION},
        )
        return AnthropicModel(name, endpoint)
    endpoint = ModelEndpoint(
        f"{address}/chat/completions", model=name, connections=connections, key=key, key_settings=key_settings
    )
    # OpenAI's newer models reject `max_tokens`; other servers may know only that.
    return OpenAiModel(name, endpoint, limit="max_completion_tokens" if kind == "openai" else "max_tokens")


def is_provided(name: str) -> bool:
    """Whether a name means a provider's model or the offline model, which read no files of this machine."""
    kind, _, rest = name.partition(":")
    return name == OFFLINE or (kind in ADDRESSES and bool(rest.strip()))


def missing_key(name: str, settings: LlmSettings) -> str | None:
    """Return the settings for the key of a model that needs one and has none; otherwise None."""
    kind = name.partition(":")[0]
    if kind not in ADDRESSES:
        return None
    key, key_settings = _key(kind, settings, ours=kind == settings.model.partition(":")[0])
    return key_settings if key is None and key_settings else None


def _key(kind: str, settings: LlmSettings, *, ours: bool) -> tuple[SecretStr | None, str]:
    """Return the key for a provider, and the settings for it if one is needed."""
    own = settings.api_key if ours else None
    if kind == "ollama" or (ours and settings.base_url):
        return own, ""
    usual: SecretStr | None = getattr(settings, f"{kind}_api_key")
    return own or usual, f"{kind.upper()}_API_KEY or HOLDFAST_LLM__{kind.upper()}_API_KEY"
