#!/usr/bin/env python3
"""Can Anthropic's own client talk to sheaf?

    python3 -m venv /tmp/sdk && /tmp/sdk/bin/pip install anthropic==2.14.0
    cargo build && /tmp/sdk/bin/python tests/sdk/anthropic.py target/debug/sheaf

A model server with a script answers `sheaf serve`; the PyPI package `anthropic` asks it by the messages API. Checks models, an
answer, a stream with its usage, thoughts, a question, keys in both headers, and the errors that it raises.
"""
import http.server, json, os, pathlib, subprocess, sys, tempfile, threading

# A script's own folder comes first where modules are looked for, and this file has the name of one.
sys.path.pop(0)
import anthropic

if len(sys.argv) < 2 or not pathlib.Path(sys.argv[1]).exists():
    sys.exit(__doc__)
SHEAF = pathlib.Path(sys.argv[1]).resolve()
TOKEN = "a-token-for-the-sdk-of-anthropic"
ASK = {"title": "Before I go on", "questions": [{"id": "db", "prompt": "Which database?", "options": [{"id": "pg", "label": "Postgres"}, {"id": "l", "label": "SQLite"}]}]}


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(200, "application/json", json.dumps({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))

    def do_POST(self):
        messages = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
        said = str(messages[-1]["content"])
        if "be busy" in said:
            return self.answer(429, "application/json", json.dumps({"error": {"message": "slow down"}}), {"retry-after": "3600"})
        if "ask me" in said:
            deltas, end = [{"content": "One thing:"}, {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "ask", "arguments": json.dumps(ASK)}}]}], "tool_calls"
        elif "look" in said and messages[-1]["role"] == "user":
            deltas, end = [{"reasoning_content": "hm, "}, {"reasoning_content": "a file"}, {"content": "I will look."},
                {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "read_file", "arguments": '{"target_file":"notes.txt"}'}}]}], "tool_calls"
        else:
            deltas, end = [{"content": it} for it in ("Say ", "`hello`.\n\n", "```rust\nlet x", " = 1;\n```\n")], "stop"
        chunks = [{"choices": [{"index": 0, "delta": it}]} for it in deltas]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": end}], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
        self.answer(200, "text/event-stream", "".join(f"data: {json.dumps(it)}\n\n" for it in chunks) + "data: [DONE]\n\n")

    def answer(self, status, kind, body, more={}):
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(body.encode())), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
home = pathlib.Path(tempfile.mkdtemp(prefix="sheaf-anthropic-"))
(home / "work").mkdir()
(home / "work" / "notes.txt").write_text("x\n")
gateway = subprocess.Popen([SHEAF, "serve", "--listen", "127.0.0.1:0"], cwd=home / "work", stdout=subprocess.PIPE, text=True, env={
    "HOME": str(home), "PATH": os.environ["PATH"], "SHEAF_SERVE_TOKEN": TOKEN, "OPENAI_API_KEY": "k", "OPENAI_MODEL": "scripted",
    "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1"})
url = gateway.stdout.readline().split()[-1]
WHOLE = "Say `hello`.\n\n```rust\nlet x = 1;\n```"
failed = []


def check(name, found, wanted):
    if found != wanted:
        failed.append(f"{name}: {found!r}, not {wanted!r}")


def raises(name, error_class, kind, work):
    try:
        work()
    except error_class as error:
        check(name, error.body["error"]["type"], kind)
    except anthropic.AnthropicError as error:
        failed.append(f"{name}: {error!r}")
    else:
        failed.append(f"{name}: nothing was raised")


try:
    client = anthropic.Anthropic(base_url=url, api_key=TOKEN, max_retries=0)
    ask = lambda text, **more: client.messages.create(model="scripted", max_tokens=900, system="be short", messages=[{"role": "user", "content": text}], **more)
    check("models", [it.id for it in client.models.list()], ["scripted"])
    check("one model", client.models.retrieve("scripted").type, "model")
    whole = ask("hi", tools=[{"name": "x", "input_schema": {"type": "object"}}])
    check("content", ([it.text for it in whole.content], whole.stop_reason, whole.role), ([WHOLE], "end_turn", "assistant"))
    check("usage", (whole.usage.input_tokens, whole.usage.output_tokens), (10, 5))
    events = list(ask("hi", stream=True))
    check("stream", "".join(it.delta.text for it in events if it.type == "content_block_delta"), WHOLE)
    check("order", (events[0].type, events[-1].type), ("message_start", "message_stop"))
    with client.messages.stream(model="scripted", max_tokens=9000, thinking={"type": "enabled", "budget_tokens": 2048}, messages=[{"role": "user", "content": "look at it"}]) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    check("the helper", (text, final.stop_reason, final.usage.output_tokens > 0), ("I will look.\n\n" + WHOLE, "end_turn", True))
    check("thoughts", "".join(it.thinking for it in final.content if it.type == "thinking"), "hm, a file\n[read_file notes.txt]")
    check("no thoughts unless they are asked for", [it.type for it in ask("look at it").content], ["text"])
    question = ask("ask me")
    check("question", question.content[0].text, "One thing:\n\nBefore I go on\nWhich database?\n1. Postgres\n2. SQLite")
    again = client.messages.create(model="scripted", max_tokens=900, messages=[{"role": "user", "content": "ask me"}, {"role": "assistant", "content": question.content}, {"role": "user", "content": "the first"}])
    check("its answer", again.content[0].text, WHOLE)
    bearer = anthropic.Anthropic(base_url=url, auth_token=TOKEN, api_key=None, max_retries=0)
    check("a bearer token", [it.id for it in bearer.models.list()], ["scripted"])
    raises("a wrong key", anthropic.AuthenticationError, "authentication_error", lambda: anthropic.Anthropic(base_url=url, api_key="x", max_retries=0).messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]))
    raises("a forced call", anthropic.BadRequestError, "invalid_request_error", lambda: ask("hi", tools=[{"name": "x", "input_schema": {"type": "object"}}], tool_choice={"type": "any"}))
    raises("no such model", anthropic.NotFoundError, "not_found_error", lambda: client.models.retrieve("none"))
    raises("a busy model", anthropic.RateLimitError, "rate_limit_error", lambda: ask("be busy"))
    raises("a busy model, streaming", anthropic.RateLimitError, "rate_limit_error", lambda: list(ask("be busy", stream=True)))
    print(f"PyPI anthropic {anthropic.__version__}: {len(failed)} of 18 failed", *failed, sep="\n  ")
    sys.exit(1 if failed else 0)
finally:
    gateway.terminate()
