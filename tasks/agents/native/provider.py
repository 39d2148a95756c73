"""One model request through pydantic-ai: our values in, an answer or a classified failure out.

Only its model classes are used, never its agent loop: no retry, fallback or tool call happens here. What is sent is
built anew for each request. What a provider says of an error is kept short, with the keys of this run masked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from schemas.agent_run import is_count
from schemas.errors import RunnerMissing
from tasks.agents.masking import Mask
from tasks.agents.native.clients import client_model
from tasks.agents.native.conversation import Answer, Failure, Finish, Request, Route, ToolCall, Usage

__all__ = ["Models", "ProviderAccess"]

_REMEDY: Final = "install it with: pip install 'sessionmill[native]'"
_LONGEST_MESSAGE: Final = 300
_EFFORTS: Final[dict[str, Any]] = {"off": False, "low": "low", "medium": "medium", "high": "high", "max": "max"}
_OWN_WORDS: Final = {
    "TIMEOUT": "the provider did not answer in time",
    "TRANSPORT": "the connection broke off before the answer was whole",
    "STREAM_CLOSED": "the answer broke off before its end",
    "UNREACHABLE": "the provider could not be reached",
    "CONTEXT_WINDOW_EXCEEDED": "the request is larger than the model's context window",
}
_ADDRESSED: Final = frozenset({"anthropic", "openai", "deepseek"})
"""Providers whose own address the client libraries know."""
_FINISHES: Final[dict[str | None, Finish]] = {"length": "length", "content_filter": "content_filter"}


@dataclass(frozen=True, slots=True)
class ProviderAccess:
    """How a provider is reached: its key, and its address where that is not its own."""

    key: str = field(repr=False)
    base_url: str | None = None


class Models:
    """The models that a session may ask; each is made when it is first asked. Use as an async context. ``secrets`` are
    masked in what a provider says of an error, as keys are."""

    def __init__(
        self,
        access: Mapping[str, ProviderAccess],
        *,
        temperature: float | None = None,
        reasoning_effort: str | None = None,
        silence_seconds: float = 300.0,
        secrets: Sequence[str] = (),
    ) -> None:
        self._access = access
        self._mask = Mask([*secrets, *(each.key for each in access.values())])
        self._models: dict[Route, Any] = {}
        self._settings: dict[str, Any] = {"max_retries": 0, "timeout": silence_seconds}
        if temperature is not None:
            self._settings["temperature"] = float(temperature)
        if reasoning_effort is not None:
            self._settings["thinking"] = _EFFORTS[reasoning_effort]

    async def ask(self, route: Route, request: Request) -> Answer | Failure:
        """The model's whole answer, or why there is none. Raises RunnerMissing, and CancelledError when cancelled: the
        connection is closed then.
        """
        access = self._access.get(route.provider)
        if access is None or not access.key:
            return Failure("MISSING_CREDENTIAL", f"there is no key for the provider {route.provider}")
        if route.provider not in _ADDRESSED and access.base_url is None:
            # The client library would send the key to the provider whose dialect it speaks.
            where = f"endpoints.{route.provider}.base_url is needed: a server that speaks Chat Completions"
            return Failure("UNSUPPORTED_MODEL", where)
        try:
            from pydantic_ai.direct import model_request_stream
            from pydantic_ai.exceptions import AgentRunError, UserError

            model = self._model(route, access)
        except ImportError:
            raise RunnerMissing("native", "pydantic-ai is not installed", _REMEDY) from None
        settings = dict(self._settings)
        if request.max_tokens is not None:
            settings["max_tokens"] = request.max_tokens
        try:
            async with model_request_stream(
                model,
                _messages(request),
                model_settings=settings,  # type: ignore[arg-type]
                model_request_parameters=_parameters(request),
            ) as stream:
                async for _ in stream:
                    pass
                response = stream.get()
        except (AgentRunError, UserError) as error:
            return _failure(error, self._masked)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a client library's own error, which nothing above it classified
            return Failure("MALFORMED_RESPONSE", self._masked(f"{type(error).__name__}: {error}"))
        return _answer(response)

    async def close(self) -> None:
        """Close all connections."""
        for model in self._models.values():
            await model.client.close()
        self._models.clear()

    async def __aenter__(self) -> Models:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _model(self, route: Route, access: ProviderAccess) -> Any:
        if route not in self._models:
            self._models[route] = client_model(route.provider, route.model, access.key, access.base_url)
        return self._models[route]

    def _masked(self, text: str) -> str:
        """The text on one line, short, and without any key of this run: masked before it is cut."""
        text = " ".join(self._mask.text(text).split())
        return text if len(text) <= _LONGEST_MESSAGE else f"{text[: _LONGEST_MESSAGE - 1]}…"


def _messages(request: Request) -> list[Any]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolReturnPart, UserPromptPart

    messages: list[Any] = []
    for message in request.messages:
        if message.role == "user":
            messages.append(ModelRequest(parts=[UserPromptPart(message.text)]))
        else:
            messages.append(ModelResponse(parts=[TextPart(message.text)]))
    for round in request.rounds:
        names = {call.id: call.name for call in round.answer.calls}
        messages.append(round.answer.raw)
        results = [
            ToolReturnPart(
                tool_name=names[result.call_id],
                content=result.text,
                tool_call_id=result.call_id,
                outcome="success" if result.outcome == "ok" else "failed",
            )
            for result in round.results
        ]
        messages.append(ModelRequest(parts=results))
    messages[-1].instructions = request.system
    return messages


def _parameters(request: Request) -> Any:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    tools = [
        ToolDefinition(
            name=tool.name, description=tool.description, parameters_json_schema=tool.parameters, strict=False
        )
        for tool in request.tools
    ]
    return ModelRequestParameters(function_tools=tools)


def _answer(response: Any) -> Answer | Failure:
    from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart

    usage = _usage(response.usage)
    if response.state != "complete":
        return Failure("STREAM_CLOSED", _OWN_WORDS["STREAM_CLOSED"])
    # It is sent again as it is, so what cannot be sent is taken out of it.
    parts = [
        replace(part, content=_whole(part.content)) if isinstance(part, (TextPart, ThinkingPart)) else part
        for part in response.parts
    ]
    stopped = (response.provider_details or {}).get("finish_reason")
    finish: Finish = _FINISHES.get(response.finish_reason, "stop")
    if stopped == "model_context_window_exceeded":
        finish = "context_window"
    calls = tuple(
        ToolCall(part.tool_call_id, _whole(part.tool_name), _arguments(part))
        for part in parts
        if isinstance(part, ToolCallPart)
    )
    return Answer(
        text="".join(part.content for part in parts if isinstance(part, TextPart)),
        calls=calls,
        usage=usage,
        finish="tool_use" if calls and finish == "stop" else finish,
        reasoning="".join(part.content for part in parts if isinstance(part, ThinkingPart)),
        raw=replace(response, parts=parts),
    )


def _arguments(part: Any) -> str:
    """A call's arguments as the model wrote them, be that JSON or not."""
    return _whole(part.args) if isinstance(part.args, str) else _whole(part.args_as_json_str())


def _whole(text: str) -> str:
    """The text without halves of characters, which JSON can write and UTF-8 cannot."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _usage(usage: Any) -> Usage | None:
    """Our disjoint counts of pydantic-ai's inclusive ones; None where the provider said nothing, or what cannot be."""
    if usage.unmeasured_requests or not (usage.input_tokens or usage.output_tokens):
        return None
    counts = (
        usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.output_reasoning_tokens or 0,
    )
    if not all(map(is_count, counts)):
        return None
    return Usage(*counts[:4], reasoning=counts[4] or None)


def _failure(error: Any, masked: Any) -> Failure:
    code = _code(error)
    message = _OWN_WORDS.get(code) or masked(_said(error))
    status = getattr(error, "status_code", None)
    after = getattr(error, "retry_after", None)
    return Failure(
        code,
        message,
        status=status,
        retry_after_ms=round(after * 1000) if after is not None else None,
    )


def _said(error: Any) -> str:
    """The provider's own words where there are some."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and isinstance(inner.get("message"), str):
            return (
                f"HTTP {error.status_code}: {inner['message']}" if hasattr(error, "status_code") else inner["message"]
            )
    return str(error)


def _code(error: Any) -> str:
    from pydantic_ai import exceptions as known

    if isinstance(error, known.ModelContextWindowExceededError):
        return "CONTEXT_WINDOW_EXCEEDED"
    if isinstance(error, known.ModelAPIError) and error.in_stream:
        return "STREAM_CLOSED"
    if isinstance(error, known.ModelConnectionError):
        if error.phase in ("connect", "pool"):
            return "UNREACHABLE"
        return "TIMEOUT" if isinstance(error, known.ModelTimeoutError) else "TRANSPORT"
    for kind, code in (
        (known.ModelRequestTimeout, "TIMEOUT"),
        (known.ModelRateLimitError, "RATE_LIMIT"),
        (known.ModelQuotaExceededError, "QUOTA"),
        (known.ModelUnavailableError, "OVERLOADED"),
        (known.ModelServerError, "SERVER"),
        (known.ModelAuthenticationError, "AUTH"),
        (known.ModelRequestRejectedError, "INVALID_REQUEST"),
        (known.ContentFilterError, "CONTENT_FILTER"),
        (known.UnexpectedModelBehavior, "MALFORMED_RESPONSE"),
        (known.UserError, "UNSUPPORTED_REQUEST"),
    ):
        if isinstance(error, kind):
            return code
    if isinstance(error, known.ModelHTTPError):
        return "SERVER" if error.status_code >= 500 else f"HTTP_{error.status_code}"
    return "STREAM_CLOSED"
