"""A small server that speaks the Messages protocol: it answers as it was told, in order."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def message(*content: dict[str, Any], stop: str) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def uses(number: int, **command: Any) -> dict[str, Any]:
    """The model asks for the memory tool."""
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "memory", "input": command}
    return message(call, stop="tool_use")


def says(text: str) -> dict[str, Any]:
    return message({"type": "text", "text": text}, stop="end_turn")


class Script:
    """What the server answers, and what it was sent."""

    def __init__(self, answers: Sequence[dict[str, Any]]) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    def results(self) -> list[tuple[str, bool]]:
        """What the tool answered, and whether as an error; a client may send the whole
        conversation every time or what is new in it."""
        found: dict[str, tuple[str, bool]] = {}
        for request in self.requests:
            for turn in request["messages"]:
                blocks = turn["content"] if isinstance(turn["content"], list) else []
                for block in blocks:
                    if block["type"] == "tool_result":
                        told = _text(block["content"]), bool(block.get("is_error"))
                        found[block["tool_use_id"]] = told
        return list(found.values())


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@contextmanager
def messages_server(*answers: dict[str, Any]) -> Iterator[Script]:
    script = Script(answers)

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            script.requests.append(json.loads(self.rfile.read(length)))
            body = json.dumps(script.answers.pop(0)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    script.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
