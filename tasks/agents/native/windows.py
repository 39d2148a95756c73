"""How much a model can take: its context window by the packaged price list, whoever serves it."""

from __future__ import annotations

from tasks.agents.native.conversation import Route

__all__ = ["known_window"]


def known_window(route: Route) -> int | None:
    """The model's context window in tokens; None where it is not known: it is never guessed."""
    from genai_prices.data_snapshot import get_snapshot

    provider = "google" if route.provider == "gemini" else route.provider
    try:
        _, model = get_snapshot().find_provider_model(route.model, None, provider, None)
    except LookupError:
        return None
    return model.context_window
