#!/usr/bin/env python3
"""Can OpenAI's own clients talk to sheaf?

    python3 -m venv /tmp/sdk && /tmp/sdk/bin/pip install openai==3.52.0
    npm install --prefix /tmp/sdk/npm openai
    cargo build && /tmp/sdk/bin/python tests/sdk/openai.py target/debug/sheaf /tmp/sdk/npm

A model server with a script answers `sheaf serve`; the PyPI package `openai`, then npm's, ask it. Both check models, an answer, a
stream with its usage, what was thought and done on the way, a question, and the errors that they raise; by the chat completions
and by the responses API. Ends with 77 when
npm's is not there, having compared with the other.
"""
import http.server, json, os, pathlib, subprocess, sys, tempfile, threading

# A script's own folder comes first where modules are looked for, and this file has the name of one.
sys.path.pop(0)
import openai

if len(sys.argv) < 2 or not pathlib.Path(sys.argv[1]).exists():
    sys.exit(__doc__)
SHEAF = pathlib.Path(sys.argv[1]).resolve()
NPM = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
TOKEN = "a-token-for-the-sdks-of-openai"
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
home = pathlib.Path(tempfile.mkdtemp(prefix="sheaf-openai-"))
(home / "work").mkdir()
(home / "work" / "notes.txt").write_text("x\n")
gateway = subprocess.Popen([SHEAF, "serve", "--listen", "127.0.0.1:0"], cwd=home / "work", stdout=subprocess.PIPE, text=True, env={
    "HOME": str(home), "PATH": os.environ["PATH"], "SHEAF_SERVE_TOKEN": TOKEN, "OPENAI_API_KEY": "k", "OPENAI_MODEL": "scripted",
    "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1"})
url = gateway.stdout.readline().split()[-1] + "/v1"
WHOLE = "Say `hello`.\n\n```rust\nlet x = 1;\n```"
failed = []


def check(name, found, wanted):
    if found != wanted:
        failed.append(f"{name}: {found!r}, not {wanted!r}")


def raises(name, kind, code, work):
    try:
        work()
    except kind as error:
        check(name, error.code, code)
    except openai.OpenAIError as error:
        failed.append(f"{name}: {error!r}")
    else:
        failed.append(f"{name}: nothing was raised")


try:
    client = openai.OpenAI(base_url=url, api_key=TOKEN, max_retries=0)
    user = lambda text: [{"role": "system", "content": "be short"}, {"role": "user", "content": text}]
    ask = lambda text, **more: client.chat.completions.create(model="scripted", messages=user(text), **more)
    check("models", [it.id for it in client.models.list()], ["scripted"])
    check("one model", client.models.retrieve("scripted").object, "model")
    whole = ask("hi")
    check("content", (whole.choices[0].message.content, whole.choices[0].finish_reason), (WHOLE, "stop"))
    check("usage", (whole.usage.prompt_tokens, whole.usage.completion_tokens, whole.usage.total_tokens), (10, 5, 15))
    chunks = list(ask("hi", stream=True, stream_options={"include_usage": True}, temperature=0.2))
    check("stream", "".join(it.choices[0].delta.content or "" for it in chunks if it.choices), WHOLE)
    check("usage of a stream", [it.usage.total_tokens for it in chunks if it.usage], [15])
    with client.chat.completions.stream(model="scripted", messages=user("hi")) as stream:
        check("the helper", stream.until_done().get_final_completion().choices[0].message.content, WHOLE)
    looked = ask("look at it").choices[0].message
    check("reasoning", looked.model_extra["reasoning_content"], "hm, a file\n[read_file notes.txt]")
    check("content after a tool", looked.content, "I will look.\n\n" + WHOLE)
    question = ask("ask me").choices[0].message.content
    check("question", question, "One thing:\n\nBefore I go on\nWhich database?\n1. Postgres\n2. SQLite")
    again = client.chat.completions.create(model="scripted", messages=[*user("ask me"), {"role": "assistant", "content": question}, {"role": "user", "content": "the first"}])
    check("its answer", again.choices[0].message.content, WHOLE)
    raises("a wrong key", openai.AuthenticationError, "invalid_api_key", lambda: openai.OpenAI(base_url=url, api_key="x", max_retries=0).models.list())
    raises("two answers", openai.BadRequestError, "stream_protocol", lambda: ask("hi", n=2))
    raises("no such model", openai.NotFoundError, "stream_protocol", lambda: client.models.retrieve("gpt-none"))
    raises("a busy model", openai.RateLimitError, "rate_limit_exceeded", lambda: ask("be busy"))
    raises("a busy model, streaming", openai.RateLimitError, "rate_limit_exceeded", lambda: list(ask("be busy", stream=True)))
    respond = lambda text, **more: client.responses.create(model="scripted", instructions="be short", input=text, **more)
    whole = respond("hi", max_output_tokens=900, tools=[{"type": "function", "name": "x", "parameters": {}}])
    check("response", (whole.output_text, whole.status, whole.output[-1].role), (WHOLE, "completed", "assistant"))
    check("usage of a response", (whole.usage.input_tokens, whole.usage.output_tokens, whole.usage.total_tokens), (10, 5, 15))
    events = list(respond("hi", stream=True))
    check("events", "".join(it.delta for it in events if it.type == "response.output_text.delta"), WHOLE)
    check("order of events", [it.sequence_number for it in events], list(range(len(events))))
    check("last event", (events[-1].type, events[-1].response.output_text), ("response.completed", WHOLE))
    with client.responses.stream(model="scripted", input="look at it") as stream:
        final = stream.get_final_response()
    check("the helper of responses", final.output_text, "I will look.\n\n" + WHOLE)
    check("reasoning of a response", "".join(part.text for it in final.output if it.type == "reasoning" for part in it.summary), "hm, a file\n[read_file notes.txt]")
    asked = respond("ask me")
    again = client.responses.create(model="scripted", input=[{"role": "user", "content": "ask me"}, *[it.model_dump(exclude_none=True) for it in asked.output], {"role": "user", "content": "the first"}])
    check("a conversation of responses", again.output_text, WHOLE)
    raises("a stored response", openai.BadRequestError, "stream_protocol", lambda: respond("hi", previous_response_id="resp_1"))
    raises("a forced call", openai.BadRequestError, "stream_protocol", lambda: respond("hi", tool_choice="required"))
    raises("a busy model, as a response", openai.RateLimitError, "rate_limit_exceeded", lambda: respond("be busy"))
    raises("a busy model, as events", openai.RateLimitError, "rate_limit_exceeded", lambda: list(respond("be busy", stream=True)))
    print(f"PyPI openai {openai.__version__}: {len(failed)} of 30 failed", *failed, sep="\n  ")
    if NPM is None or not (NPM / "node_modules" / "openai").exists():
        sys.exit(1 if failed else 77)
    script = home / "ask.mjs"
    script.write_text("""
import { createRequire } from "node:module";
const OpenAI = createRequire(process.argv[2] + "/")("openai");
const client = new OpenAI({ baseURL: process.argv[3], apiKey: process.argv[4], maxRetries: 0 });
const messages = [{ role: "user", content: "hi" }];
const whole = await client.chat.completions.create({ model: "scripted", messages });
const pieces = [];
for await (const it of await client.chat.completions.create({ model: "scripted", messages, stream: true })) pieces.push(it.choices[0]?.delta?.content ?? "");
const helped = await client.chat.completions.stream({ model: "scripted", messages }).finalContent();
const response = await client.responses.create({ model: "scripted", input: "hi" });
const last = await client.responses.stream({ model: "scripted", input: "hi" }).finalResponse();
const refused = await client.chat.completions.create({ model: "scripted", messages, n: 2 }).catch((it) => it);
const models = []; for await (const it of client.models.list()) models.push(it.id);
console.log(JSON.stringify([whole.choices[0].message.content, pieces.join(""), helped, response.output_text, last.output_text, refused.constructor.name, refused.param, models]));
""")
    said = subprocess.run(["node", script, NPM, url, TOKEN], capture_output=True, text=True)
    check("npm", said.stdout.strip() or said.stderr, json.dumps([WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, "BadRequestError", "n", ["scripted"]], separators=(",", ":")))
    print(f"npm openai: {'failed' if failed else 'all as it should be'}", *failed, sep="\n  ")
    sys.exit(1 if failed else 0)
finally:
    gateway.terminate()
