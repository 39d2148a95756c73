"""The stub model server, met by the providers' own clients."""

from __future__ import annotations

import json

import anthropic
import openai
import pytest

from tests.stub_llm import CUT, HANG, Answer, StubLlm, Tokens, ToolCall

USED = Tokens(input=30, cache_read=1000, cache_write=5, output=17, reasoning=4)
TOOL = ToolCall("look", {"path": "a.txt", "deep": {"n": 1}})


def _anthropic(stub: StubLlm) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=stub.url, api_key="sk-stub", max_retries=0, timeout=20)


def _openai(stub: StubLlm) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{stub.url}/v1", api_key="sk-stub", max_retries=0, timeout=20)


def _message(client: anthropic.Anthropic, text: str = "Hi") -> anthropic.types.Message:
    with client.messages.stream(
        model="claude-x", max_tokens=1000, messages=[{"role": "user", "content": text}]
    ) as stream:
        return stream.get_final_message()


def test_messages_stream_carries_text_tools_and_usage(stub_llm: StubLlm) -> None:
    stub_llm.script(Answer("Let me look at it first.", (TOOL,), USED, reasoning="hm"))
    with _anthropic(stub_llm) as client:
        message = _message(client)
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.content[2].model_dump()["input"] == {"path": "a.txt", "deep": {"n": 1}}
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.cache_read_input_tokens, message.usage.output_tokens) == (
        30,
        1000,
        17,
    )
    assert stub_llm.total() == USED
    assert stub_llm.requests()[0].request.headers["authorization"] == "Bearer sk-stub"


def test_messages_may_be_asked_for_in_one_piece(stub_llm: StubLlm) -> None:
    stub_llm.script(Answer("Hello there.", usage=USED))
    with _anthropic(stub_llm) as client:
        message = client.messages.create(
            model="claude-x", max_tokens=1000, messages=[{"role": "user", "content": "Hi"}]
        )
    assert message.content[0].model_dump()["text"] == "Hello there."
    assert message.usage.output_tokens == 17


@pytest.mark.parametrize("streamed", [True, False])
def test_chat_completions(stub_llm: StubLlm, streamed: bool) -> None:
    stub_llm.script(Answer("Let me look at it first.", (TOOL,), USED))
    with _openai(stub_llm) as client:
        if streamed:
            with client.chat.completions.stream(
                model="m", messages=[{"role": "user", "content": "Hi"}], stream_options={"include_usage": True}
            ) as stream:
                for _ in stream:
                    pass
                completion: openai.types.chat.ChatCompletion = stream.get_final_completion()
        else:
            completion = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
    choice = completion.choices[0]
    assert choice.message.content == "Let me look at it first."
    assert choice.finish_reason == "tool_calls"
    call = (choice.message.tool_calls or [])[0].model_dump()["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("look", {"path": "a.txt", "deep": {"n": 1}})
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (1035, 17)
    assert stub_llm.total() == USED


@pytest.mark.parametrize("streamed", [True, False])
def test_responses(stub_llm: StubLlm, streamed: bool) -> None:
    stub_llm.script(Answer("Let me look at it first.", (TOOL,), USED, reasoning="hm"))
    with _openai(stub_llm) as client:
        if streamed:
            with client.responses.stream(model="m", input="Hi") as stream:
                for _ in stream:
                    pass
                response: openai.types.responses.Response = stream.get_final_response()
        else:
            response = client.responses.create(model="m", input="Hi")
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call"]
    assert response.output_text == "Let me look at it first."
    assert response.usage is not None
    assert response.usage.input_tokens == 1035
    assert response.usage.input_tokens_details.cached_tokens == 1000
    assert response.usage.output_tokens_details.reasoning_tokens == 4
    assert stub_llm.total() == USED


@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
def test_errors_are_those_of_the_provider(stub_llm: StubLlm, status: int) -> None:
    stub_llm.script(Answer("because", status=status, retry_after=1))
    with _anthropic(stub_llm) as client, pytest.raises(anthropic.APIStatusError, match="because") as refused:
        _message(client)
    assert refused.value.status_code == status
    assert refused.value.response.headers["retry-after"] == "1"
    assert stub_llm.total() == Tokens()


def test_cut_stream_is_a_broken_connection(stub_llm: StubLlm) -> None:
    stub_llm.script(CUT)
    with _anthropic(stub_llm) as client, pytest.raises(Exception, match="reset by peer"):
        _message(client)
    assert stub_llm.requests()[0].outcome == "cut"
    assert stub_llm.total() == Tokens()


def test_hanging_request_lasts_until_the_client_gives_up(stub_llm: StubLlm) -> None:
    stub_llm.script(HANG)
    with _anthropic(stub_llm) as client, pytest.raises(anthropic.APITimeoutError):
        _message(client.with_options(timeout=0.3))


def test_answers_come_in_order_and_the_last_one_stays(stub_llm: StubLlm) -> None:
    stub_llm.script(Answer("one"), Answer("two"))
    stub_llm.script(Answer("blue"), name="blue")
    with _anthropic(stub_llm) as client:
        said = [_message(client, text).content[0].model_dump()["text"] for text in ("a", "script:blue", "b", "c")]
    assert said == ["one", "blue", "two", "two"]
    assert [each.script for each in stub_llm.requests()] == ["", "blue", "", ""]


def test_script_by_round_answers_a_retry_alike(stub_llm: StubLlm) -> None:
    stub_llm.script(Answer("one"), Answer("two"), by="round")
    with _openai(stub_llm) as client:
        first = [client.responses.create(model="m", input="Hi").output_text for _ in range(2)]
        second = client.responses.create(
            model="m",
            input=[
                {"role": "user", "content": "Hi"},
                {"type": "function_call", "call_id": "c", "name": "x", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "y"},
            ],
        )
    assert (first, second.output_text) == (["one", "one"], "two")


def test_titles_are_counted_apart(stub_llm: StubLlm) -> None:
    stub_llm.script(Answer("one"), Answer("two"))
    with _anthropic(stub_llm) as client:
        client.messages.create(model="m", max_tokens=64, messages=[{"role": "user", "content": "Name it"}])
        assert _message(client).content[0].model_dump()["text"] == "one"
    assert stub_llm.title_total() == Tokens(input=7, output=3)
    assert stub_llm.total() == Tokens(input=100, cache_read=20, output=10)
