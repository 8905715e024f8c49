"""A scripted chat server on loopback that speaks OpenAI's HTTP protocol: the real client runs against it."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from tests.servers.http_servers import Handler, running

# LiteLLM's own: it reads deprecated fields, and leaves sockets to the collector. For tests of its client.
LITELLM_WARNINGS = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@dataclass(frozen=True)
class Reply:
    """What the server does with one request.

    `end`: "done" sends the finish reason and the end mark; "silent" just ends the response; "close" cuts the
    connection; "error" sends an error object inside the stream; "hang" sends nothing more for `hang_s`. `thinking`
    comes first, as reasoning beside the reply. A `status` other than 200 comes with `message` and `headers`. With `cut`
    a stream is sent in pieces of so many bytes, in the midst of characters too.
    """

    tokens: tuple[str, ...] = ()
    finish: str | None = "stop"
    status: int = 200
    end: Literal["done", "silent", "close", "error", "hang"] = "done"
    pause_s: float = 0.0
    hang_s: float = 5.0
    usage: tuple[int, int] | None = (11, 7)
    thinking: tuple[str, ...] = ()
    message: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    cut: int = 0


def says(text: str, **options: Any) -> Reply:
    """A reply that streams `text` word by word."""
    words = text.split(" ")
    return Reply(tuple(w if n == 0 else f" {w}" for n, w in enumerate(words)), **options)


Responder = Callable[[dict[str, Any]], Reply]


@dataclass
class ChatServer:
    """`url` goes to api_base. A request takes the next of `replies`, the last one stays; `requests` has the bodies.

    With a `window` its list of models says how much the model reads; with `counts` it tells tokens, one a word. While
    `loading` it says neither, with status 503. `asked` is set by a request, `left` when a client went away in the
    midst of a reply.
    """

    url: str
    window: int | None = None
    counts: bool = False
    loading: bool = False
    replies: list[Reply | Responder] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)

    def script(self, *replies: Reply | Responder) -> None:
        """Sets what comes next."""
        self.replies = list(replies)

    def next_reply(self, request: dict[str, Any]) -> Reply:
        """The reply to this request."""
        self.requests.append(request)
        self.asked.set()
        if not self.replies:
            return Reply(status=500)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return reply(request) if callable(reply) else reply


@contextmanager
def running_chat_server() -> Iterator[ChatServer]:
    """A chat server that runs while the block does, on a free port."""
    with running(_Handler) as http:
        server = http.served = ChatServer(f"{http.url}/v1")
        yield server
        server.stopped.set()


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    """A chat server for one test."""
    with running_chat_server() as server:
        yield server


class _Handler(Handler):
    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        chat: ChatServer = self.served
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        if not self.path.endswith("/chat/completions"):
            self._about(chat, request)
            return
        reply = chat.next_reply(request)
        if reply.status != 200:
            said = reply.message or f"scripted {reply.status}"
            self._json(reply.status, {"error": {"message": said, "type": "scripted"}}, reply.headers)
        elif request.get("stream"):
            self._stream(chat, request, reply)
        else:
            self._json(
                200, self._body(request, reply, {"message": {"role": "assistant", "content": "".join(reply.tokens)}})
            )

    def _about(self, chat: ChatServer, request: dict[str, Any]) -> None:
        if chat.loading:
            self._json(503, {"error": {"message": "Loading model"}})
        elif chat.window and self.path.endswith("/models"):
            self._json(200, {"object": "list", "data": [{"id": "it", "max_model_len": chat.window}]})
        elif chat.counts and self.path.endswith("/tokenize"):
            self._json(200, {"tokens": request["content"].split()})
        else:
            self._json(404, {"error": {"message": "not here"}})

    def _body(self, request: dict[str, Any], reply: Reply, choice: dict[str, Any]) -> dict[str, Any]:
        prompt, completion = reply.usage or (0, 0)
        body = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": request["model"],
            "choices": [{"index": 0, "finish_reason": reply.finish, **choice}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
        }
        if reply.usage is None:
            del body["usage"]
        return body

    def _json(self, status: int, body: dict[str, Any], headers: tuple[tuple[str, str], ...] = ()) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for header in headers:
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, chat: ChatServer, request: dict[str, Any], reply: Reply) -> None:
        self.close_connection = True
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self._events(chat, request, reply)
        except (BrokenPipeError, ConnectionResetError):
            chat.left.set()  # the client went away, as some tests want

    def _events(self, chat: ChatServer, request: dict[str, Any], reply: Reply) -> None:
        def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return {
                "id": "x",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": request["model"],
                "choices": [choice],
            }

        for thought in reply.thinking:
            self._event(reply, chunk({"role": "assistant", "reasoning_content": thought}))
        for token in reply.tokens:
            self._event(reply, chunk({"role": "assistant", "content": token}))
            time.sleep(reply.pause_s)
        if reply.end == "error":
            self._event(
                reply, {"error": {"message": "scripted error in the stream", "type": "server_error", "code": 500}}
            )
        elif reply.end == "hang":
            chat.stopped.wait(reply.hang_s)
        elif reply.end == "close":
            self.connection.close()
        elif reply.end == "done":
            self._event(reply, chunk({}, reply.finish))
            if reply.usage is not None:
                self._event(reply, {**self._body(request, reply, {}), "object": "chat.completion.chunk", "choices": []})
            self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, reply: Reply, data: dict[str, Any]) -> None:
        sent = f"data: {json.dumps(data, ensure_ascii=not reply.cut)}\n\n".encode()
        step = reply.cut or len(sent)
        for start in range(0, len(sent), step):
            self.wfile.write(sent[start : start + step])
            self.wfile.flush()
