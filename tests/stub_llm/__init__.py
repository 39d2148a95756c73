"""A model server on loopback that answers by script: Anthropic Messages, OpenAI Chat Completions, OpenAI Responses.

::

    def test_something(stub_llm: StubLlm) -> None:
        stub_llm.script(Answer(tools=(ToolCall("Bash", {"command": "ls"}),)), Answer("done"))
        run_agent(base_url=stub_llm.url, ...)          # POST {url}/v1/messages, /v1/chat/completions, /v1/responses
        assert stub_llm.total() == Tokens(...)         # what it served, to the token

Answers are given in the order of requests; the last is repeated. Programs that run side by side each name a script of
their own: `stub_llm.script(..., name="blue")` answers the requests whose body holds ``script:blue``. With
``by="round"`` an answer is chosen by how many answers the request's conversation already holds, so that a retry gets
the same again and conversations may share a script. Requests for a title (no tools, at most 64 tokens) are counted
apart and use up no answer.
"""

from tests.stub_llm.script import CUT, HANG, Answer, Script, Tokens, ToolCall
from tests.stub_llm.served import Request, Served
from tests.stub_llm.server import StubLlm, running

__all__ = ["CUT", "HANG", "Answer", "Request", "Script", "Served", "StubLlm", "Tokens", "ToolCall", "running"]
