"""A scripted LLM for `serve.py`: an OpenAI-style server on loopback that answers from the passages it is shown.

Run as a process of its own, so that its work is none of the measured server's: it prints its port and serves until its
standard input is closed. A model whose name ends with `slow` takes its time between tokens.
"""

import asyncio
import json
import re
import sys
from typing import Any

ASKED = re.compile(r"<question>\s*(.*?)\s*</question>", re.DOTALL)
NAME = re.compile(r"code word of (\w+)")
PAUSE_S, SLOW_S = 0.005, 0.3


def reply_to(request: dict[str, Any]) -> str:
    """The sentence of the passage that has the name of the question, with its number; else the question itself."""
    system, *_, last = (message["content"] for message in request["messages"])
    question = (ASKED.findall(last) or [last])[-1]
    if "numbered passages" not in system:
        return str(question)
    name = NAME.search(question)
    found = name and re.search(rf"\[(\d+)\][^\[]*?(The code word of {name[1]} is \w+)", last)
    return f"{found[2]} [{found[1]}]." if found else "NO_ANSWER"


def chunk(delta: dict[str, Any], finish: str | None = None, usage: dict[str, int] | None = None) -> bytes:
    """One event of a streamed reply."""
    body: dict[str, Any] = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    body["choices"] = [] if usage else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + json.dumps({**body, "usage": usage} if usage else body).encode() + b"\n\n"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request, one streamed reply, and the connection is closed."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
        body = await reader.readexactly(int(length[1]) if length else 0)
        if not head.split(" ", 2)[1].endswith("/chat/completions"):
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        request = json.loads(body)
        pause = SLOW_S if request["model"].endswith("slow") else PAUSE_S
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for piece in re.findall(r"\s*\S+", reply_to(request)):
            writer.write(chunk({"role": "assistant", "content": piece}))
            await writer.drain()
            await asyncio.sleep(pause)
        writer.write(chunk({}, "stop"))
        writer.write(chunk({}, usage={"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}))
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass  # whoever asked has gone
    finally:
        writer.close()


async def main() -> None:
    """Serves on a free port."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
