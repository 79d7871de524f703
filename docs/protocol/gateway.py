#!/usr/bin/env python3
"""A gateway of the documents protocol: python3 gateway.py [PORT]

It repeats the message, lists its folder, and asks back after a question mark. No model, no token, no limits: not for a network."""
import json, os, re, sys, threading, time, uuid
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RESPONSES = {}  # by id; a real gateway forgets them after a while
WRAPPERS = {"response_start": "response", "document_start": "document"}  # of dialect B
ENDING = {"usage": {"promptTokens": 0, "completionTokens": 0, "totalTokens": 0}, "metadata": {"duration_ms": 0, "toolCallCount": 0, "turnCount": 1}}
QUESTION = {"id": "q1", "text": "Short or long?", "options": [{"id": "short", "label": "Short"}, {"id": "long", "label": "Long"}]}


class Response:
    def __init__(self, request, mode):
        message, options = request["messages"][-1], request.get("streamOptions") or {}
        self.text, self.is_answer = str(message.get("content", "")), "clarificationResponse" in message
        self.may_list = request.get("tools") is None or "list_dir" in request["tools"]
        self.is_live = request.get("stream") is True and options.get("liveInput") is not False
        self.dialect, self.since = options.get("dialect"), time.monotonic()
        self.events, self.answers, self.is_cancelled, self.changed = [], {}, False, threading.Condition()
        self.start = {"id": "chat_" + uuid.uuid4().hex, "conversationId": request.get("conversationId") or "conv_" + uuid.uuid4().hex,
                      "model": request.get("model") or "echo", "mode": mode, "created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}
        self.whole = {**self.start, "status": "streaming", "documents": [], **ENDING}
        RESPONSES[self.start["id"]] = self

    def emit(self, name, **data):
        with self.changed:
            self.events.append((name, data))
            self.changed.notify_all()

    def open(self, kind, metadata, content=None):
        number = len(self.whole["documents"]) + 1
        frame = {"id": f"doc_{number:03}", "type": kind, "sequence": number}
        self.emit("document_start", **frame, metadata=dict(metadata))
        self.whole["documents"].append({**frame, "content": content, "metadata": metadata})
        return self.whole["documents"][-1]

    def close(self, document, **content):
        self.emit("document_end", documentId=document["id"], metadata=dict(document["metadata"]), **content)

    def say(self, text):
        document = self.open("text", {"format": "markdown"}, "")
        for delta in re.findall(r"\s*\S+", text):
            if not self.is_cancelled or not document["content"]:
                document["content"] += delta
                self.emit("content_delta", documentId=document["id"], delta=delta)
                time.sleep(0.002)
        self.close(document, finalContent=document["content"])

    def list_folder(self):
        name, arguments = {"toolName": "list_dir", "toolCallId": "call_" + uuid.uuid4().hex[:8]}, {"target_directory": "."}
        document, began = self.open("tool_call", name), time.monotonic()
        self.emit("tool_call_start", documentId=document["id"], **name)
        self.emit("tool_call_arguments", documentId=document["id"], arguments=arguments)
        result = {"result": {"status": "success", "data": sorted(os.listdir("."))[:20]}, "duration_ms": int((time.monotonic() - began) * 1000)}
        self.emit("tool_result", documentId=document["id"], **result)
        document["metadata"] = {**name, "arguments": arguments, **result}
        self.close(document)

    def ask(self):
        """Returns the outcome of the question; None if the next message has to answer it."""
        document = self.open("clarification", {"kind": "question"}, "")
        document["metadata"] = metadata = {"kind": "question", "questions": [QUESTION]}
        if self.is_live:
            self.emit("metadata_delta", documentId=document["id"], metadata={"questions": [QUESTION]})
            with self.changed:
                self.changed.wait_for(lambda: document["id"] in self.answers or self.is_cancelled, timeout=600)
            answer = self.answers.get(document["id"], {"outcome": "cancelled"} if self.is_cancelled else {})
            metadata.update({name: answer[name] for name in ("outcome", "answers") if answer.get(name)})
        self.close(document)
        return metadata.get("outcome")

    def run(self):
        self.emit("response_start", **self.start, status="streaming", capabilities=["cancel", "live_input"] if self.is_live else ["cancel"])
        self.say("You said: " + (self.text.strip() or "nothing"))
        if self.may_list and not self.is_cancelled:
            self.list_folder()
        waits = "?" in self.text and not self.is_answer and not self.is_cancelled and self.ask() is None
        calls = sum(it["type"] == "tool_call" for it in self.whole["documents"])
        counts = {"duration_ms": int((time.monotonic() - self.since) * 1000), "toolCallCount": calls, "turnCount": 1}
        reason = "cancelled" if self.is_cancelled else "awaiting_input" if waits else "stop"
        end = {**ENDING, "status": "completed", "metadata": {**counts, "finishReason": reason}}
        self.whole.update(end)
        self.emit("done", **end)


class Gateway(BaseHTTPRequestHandler):
    def begin(self, status, media):
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.end_headers()

    def answer(self, status, body):
        self.begin(status, "application/json")
        self.wfile.write(json.dumps(body).encode())

    def refuse(self, status, message):
        self.answer(status, {"error": {"code": "STREAM_PROTOCOL", "message": message, "source": "gateway", "details": ""}})

    def stream(self, response, dialect, position=0):
        self.begin(200, "text/event-stream")
        while position == 0 or response.events[position - 1][0] != "done":
            with response.changed:
                if not response.changed.wait_for(lambda: len(response.events) > position, timeout=15):
                    self.wfile.write(b": ping\n\n")
                    continue
            (name, data), position, wrapper = response.events[position], position + 1, WRAPPERS.get(response.events[position][0])
            field = "" if dialect == "data" else f"event: {name}\n"
            data = {"type": name, **({wrapper: data} if wrapper else data)} if dialect == "data" else data
            self.wfile.write(f"id: {position}\n{field}data: {json.dumps(data)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n" if dialect == "data" else b"")

    def do_GET(self):
        name, _, rest = self.path.partition("?")[0].removeprefix("/api/v1/chat/responses/").partition("/")
        response, last = RESPONSES.get(name), self.headers.get("Last-Event-ID", "0")
        if response and rest == "":
            return self.answer(200, response.whole)
        if response and rest == "stream" and last.isdecimal() and int(last) <= len(response.events):
            return self.stream(response, response.dialect, int(last))
        self.refuse(400 if response else 404, "nothing here, or `Last-Event-ID` is no id of an event")

    def do_POST(self):
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        except ValueError:
            return self.refuse(400, "the body is not JSON")
        name, _, rest = self.path.removeprefix("/api/v1/chat/responses/").partition("/")
        response = RESPONSES.get(name)
        if response and rest in ("cancel", "input"):
            with response.changed:
                response.is_cancelled |= rest == "cancel"
                response.answers.update({body.get("documentId"): body} if rest == "input" else {})
                response.changed.notify_all()
            return self.answer(202, {"id": name})
        is_chat = self.path in ("/api/v1/chat/completions", "/api/v1/chat/plan")
        if not is_chat or not isinstance(body, dict) or not body.get("messages"):
            return self.refuse(400 if is_chat else 404, "nothing here, or `messages` is missing or empty")
        response = Response(body, "plan" if self.path.endswith("/plan") else body.get("mode", "agent"))
        if body.get("stream") is True:
            threading.Thread(target=response.run, daemon=True).start()
            return self.stream(response, response.dialect)
        response.run()
        self.answer(200, response.whole)


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8650), Gateway)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
