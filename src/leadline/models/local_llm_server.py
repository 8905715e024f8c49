"""The process that runs the local LLM: llama.cpp's OpenAI-style server on loopback, for as long as its parent lives.

Run as a file, not imported: it shares nothing with the process that starts it but its pipes. Its first line of input is
a JSON object (model, api_key, context); it writes one line, the address or what went wrong; the end of its input, which
comes with the end of its parent however that ends, ends it.
"""

import json
import os
import sys
import threading
from typing import Any


def main() -> None:
    """Serves until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the library prints is no answer
    asked = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        server = _served(asked)
        said = {"url": server.listening_address}
    except Exception as error:  # noqa: BLE001 told to the parent, whatever it is
        server, said = None, {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(said), file=out, flush=True)
    if server is not None:
        threading.Event().wait()


def _served(asked: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = asked["model"]
    params.model_alias = {"local"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [asked["api_key"]]
    params.offline = True
    params.use_jinja = True
    params.n_ctx = asked["context"]
    params.n_parallel = 1
    params.cache_ram_mib = 0  # of the prompts seen, only the last one's beginning is used again
    params.endpoint_slots = False  # it would show the prompts
    params.verbosity = -1
    return xllamacpp.Server(params)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
