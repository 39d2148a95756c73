"""The client of each provider: pydantic-ai's models on connections that look at what is said of usage.

A ``base_url`` is a server that speaks the provider's dialect; None is the provider's own.
"""

from __future__ import annotations

from typing import Any, Final

from tasks.agents.native.told_usage import believed

__all__ = ["client_model"]

_CONNECT_SECONDS: Final = 5.0


async def _connect_soon(request: Any) -> None:
    """A server that is there is reached soon; the time that a request has is for its answer."""
    seconds = request.extensions["timeout"]
    seconds["connect"] = min(seconds["connect"] or _CONNECT_SECONDS, _CONNECT_SECONDS)


async def _believe(response: Any) -> None:
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        read = response.aiter_bytes
        response.aiter_bytes = lambda *given, **named: believed(read(*given, **named))


_HOOKS: Final[dict[str, list[Any]]] = {"request": [_connect_soon], "response": [_believe]}


def client_model(provider: str, model: str, key: str, base_url: str | None) -> Any:
    """The model of pydantic-ai that asks this provider. Raises ImportError where that is not installed."""
    if provider == "anthropic":
        from anthropic import DefaultAsyncHttpxClient as AnthropicConnections
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        connections: Any = AnthropicConnections(event_hooks=_HOOKS)
        by_messages = AnthropicProvider(api_key=key, base_url=base_url, http_client=connections)
        return AnthropicModel(model, provider=by_messages)
    from openai import AsyncOpenAI
    from openai import DefaultAsyncHttpxClient as OpenAIConnections
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.deepseek import DeepSeekProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    # A stream that ends without saying why is one that was cut, whoever cut it.
    profile: Any = {"openai_chat_streaming_requires_finish_reason": True}
    connections = OpenAIConnections(event_hooks=_HOOKS)
    asked: Any
    if provider != "deepseek":
        asked = OpenAIProvider(api_key=key, base_url=base_url, http_client=connections)
    elif base_url:
        client = AsyncOpenAI(api_key=key, base_url=base_url, http_client=connections)
        asked = DeepSeekProvider(openai_client=client)
    else:
        asked = DeepSeekProvider(api_key=key, http_client=connections)
    return OpenAIChatModel(model, provider=asked, profile=profile)
