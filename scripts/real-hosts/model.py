"""A model that says what it was told to say, in the three protocols that the hosts speak. It listens on loopback only.

A script is a list of turns; a turn is a call `(tool, input)`, or a function that does something to the world at that
moment and returns one. When the script is over, the model says that it is done. Everything that was sent to it is kept,
so that a test can look at what a real model would have read.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DONE = "All is done."


class Model:
    """`url` is where it listens. `requests` are the bodies of the main agent's turns, `others` the paths of the rest.
    `is_subagent` tells whether a body is of a subagent's turn.
    """

    def __init__(self):
        self.script = []
        self.subagent = []
        self.is_subagent = lambda body: False
        self.requests = []
        self.others = []
        self.calls = 0
        self.lock = threading.Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.answer("text/plain", b"")

            def do_GET(self):
                model.others.append("GET " + self.path)
                self.answer("application/json", b'{"data": [], "models": []}')

            def do_CONNECT(self):
                # A host that wants to reach somebody else by this way does not.
                model.others.append("CONNECT " + self.path)
                self.send_error(403)

            def do_POST(self):
                size = int(self.headers.get("Content-Length") or 0)
                try:
                    body = json.loads(self.rfile.read(size) or b"{}")
                except ValueError:
                    body = {}
                self.answer(*model.speak(self.path, body))

            def answer(self, kind, content):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()

    def begin(self, script, subagent=()):
        """A new conversation, and a script for those that it starts in turn."""
        with self.lock:
            self.script = list(script)
            self.subagent = list(subagent)
            self.requests = []
            self.others = []

    def speak(self, path, body):
        """The kind and the bytes of an answer."""
        if "/messages" in path and not path.split("?")[0].endswith("count_tokens"):
            say = messages
        elif path.endswith("/responses"):
            say = responses
        elif "enerateContent" in path:
            say = generated
        else:
            self.others.append("POST " + path)
            return "application/json", json.dumps({"input_tokens": 1, "totalTokens": 1}).encode()
        with self.lock:
            # Hosts ask for titles, summaries and the like beside the conversation: there is no tool in such a request.
            calls = []
            if not body.get("tools"):
                self.others.append("POST " + path)
            else:
                aside = self.is_subagent(body)
                script = self.subagent if aside else self.script
                if not aside:
                    self.requests.append(body)
                if script:
                    turn = script.pop(0)
                    self.calls += 1
                    calls.append((f"call_{self.calls}", *(turn() if callable(turn) else turn)))
        return say(body, calls, stream="streamGenerateContent" in path or body.get("stream") is True)


def events(pairs):
    """A stream of events; those without a name have only data."""
    lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in pairs]
    return "text/event-stream", "".join(lines).encode()


def messages(body, calls, stream):
    """Anthropic's Messages."""
    blocks = [{"type": "tool_use", "id": "toolu_" + name, "name": tool, "input": given} for name, tool, given in calls]
    blocks = blocks or [{"type": "text", "text": DONE}]
    reason = "tool_use" if calls else "end_turn"
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", "scripted"),
        "stop_sequence": None, "usage": usage,
    }
    if not stream:
        whole = head | {"content": blocks, "stop_reason": reason}
        return "application/json", json.dumps(whole).encode()
    said = [("message_start", {"message": head | {"content": [], "stop_reason": None}})]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            start, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        said.append(("content_block_start", {"index": index, "content_block": start}))
        said.append(("content_block_delta", {"index": index, "delta": delta}))
        said.append(("content_block_stop", {"index": index}))
    said.append(("message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}))
    said.append(("message_stop", {}))
    return events([(name, {"type": name} | data) for name, data in said])


def responses(_body, calls, stream):
    """OpenAI's Responses. An input that is a text is one for a tool that takes free text."""
    items = []
    for name, tool, given in calls:
        space, _, short = tool.rpartition("/")
        item = {"id": "item_" + name, "call_id": name, "name": short, "status": "completed"}
        if space:
            item["namespace"] = space
        if short == "tool_search":
            items.append({"type": "tool_search_call", "call_id": name, "execution": "client", "arguments": given})
        elif isinstance(given, str):
            items.append(item | {"type": "custom_tool_call", "input": given})
        else:
            items.append(item | {"type": "function_call", "arguments": json.dumps(given)})
    text = {"type": "output_text", "text": DONE, "annotations": []}
    items = items or [{"type": "message", "id": "msg_1", "role": "assistant", "content": [text], "status": "completed"}]
    usage = {
        "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
    }
    whole = {"id": "resp_1", "object": "response", "status": "completed", "output": items, "usage": usage}
    if not stream:
        return "application/json", json.dumps(whole).encode()
    said = [("response.created", {"response": {"id": "resp_1"}})]
    for index, item in enumerate(items):
        said.append(("response.output_item.added", {"output_index": index, "item": item}))
        said.append(("response.output_item.done", {"output_index": index, "item": item}))
    said.append(("response.completed", {"response": whole}))
    return events([(name, {"type": name} | data) for name, data in said])


def generated(_body, calls, stream):
    """Google's GenerateContent."""
    parts = [{"functionCall": {"name": tool, "args": given}} for _, tool, given in calls] or [{"text": DONE}]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted", "responseId": "r1"}
    return events([(None, whole)]) if stream else ("application/json", json.dumps(whole).encode())
