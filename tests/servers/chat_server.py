"""A scripted chat server on loopback that speaks OpenAI's HTTP protocol: the real client runs against it."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from tests.servers.http_servers import Handler, running


@dataclass(frozen=True)
class Reply:
    """What the server does with one request.

    `end`: "done" sends the finish reason and the end mark; "silent" just ends the response; "close" cuts the
    connection; "error" sends an error object inside the stream; "hang" sends nothing more for `hang_s`.
    """

    tokens: tuple[str, ...] = ()
    finish: str | None = "stop"
    status: int = 200
    end: Literal["done", "silent", "close", "error", "hang"] = "done"
    pause_s: float = 0.0
    hang_s: float = 5.0
    usage: tuple[int, int] = (11, 7)


def says(text: str, **options: Any) -> Reply:
    """A reply that streams `text` word by word."""
    words = text.split(" ")
    return Reply(tuple(w if n == 0 else f" {w}" for n, w in enumerate(words)), **options)


Responder = Callable[[dict[str, Any]], Reply]


@dataclass
class ChatServer:
    """`url` goes to api_base. A request takes the next of `replies`, the last one stays; `requests` has the bodies."""

    url: str
    replies: list[Reply | Responder] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def script(self, *replies: Reply | Responder) -> None:
        """Sets what comes next."""
        self.replies = list(replies)

    def next_reply(self, request: dict[str, Any]) -> Reply:
        """The reply to this request."""
        self.requests.append(request)
        if not self.replies:
            return Reply(status=500)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return reply(request) if callable(reply) else reply


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    """A chat server for one test, on a free port."""
    with running(_Handler) as http:
        server = http.served = ChatServer(f"{http.url}/v1")
        yield server
        server.stopped.set()


class _Handler(Handler):
    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        chat: ChatServer = self.served
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = chat.next_reply(request)
        if reply.status != 200:
            self._json(reply.status, {"error": {"message": f"scripted {reply.status}", "type": "scripted"}})
        elif request.get("stream"):
            self._stream(chat, request, reply)
        else:
            self._json(
                200, self._body(request, reply, {"message": {"role": "assistant", "content": "".join(reply.tokens)}})
            )

    def _body(self, request: dict[str, Any], reply: Reply, choice: dict[str, Any]) -> dict[str, Any]:
        prompt, completion = reply.usage
        return {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": request["model"],
            "choices": [{"index": 0, "finish_reason": reply.finish, **choice}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
        }

    def _json(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, chat: ChatServer, request: dict[str, Any], reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self._events(chat, request, reply)
        except (BrokenPipeError, ConnectionResetError):
            return  # the client went away, as some tests want

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

        for token in reply.tokens:
            self._event(chunk({"role": "assistant", "content": token}))
            time.sleep(reply.pause_s)
        if reply.end == "error":
            self._event({"error": {"message": "scripted error in the stream", "type": "server_error", "code": 500}})
        elif reply.end == "hang":
            chat.stopped.wait(reply.hang_s)
        elif reply.end == "close":
            self.connection.close()
        elif reply.end == "done":
            self._event(chunk({}, reply.finish))
            self._event({**self._body(request, reply, {}), "object": "chat.completion.chunk", "choices": []})
            self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, data: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()
