#!/usr/bin/env python3
"""Do the official SDKs read recorded answers as sheaf does?

    python3 -m venv /tmp/sdk && /tmp/sdk/bin/pip install openai anthropic
    SHEAF_SDK_OUT=/tmp/sdk-out cargo test --lib recordings_are_read
    /tmp/sdk/bin/python tests/sdk/compare.py /tmp/sdk-out

Serves the bytes of tests/fixtures/{anthropic,responses} over HTTP on this machine, lets the SDKs read them, and compares
with what the tests wrote: text, reasoning, calls, counts, and whether the answer ended, was cut or failed. Where an SDK is known
to be stricter or laxer than sheaf, the difference is named in KNOWN and has to be there.
"""
import json, pathlib, sys, threading, http.server

# Beside this file lies one that is called as a package is.
sys.path[:] = [it for it in sys.path if pathlib.Path(it or ".").resolve() != pathlib.Path(__file__).resolve().parent]

try:
    import anthropic, openai
except ImportError as missing:
    print(f"SKIPPED, NOTHING WAS COMPARED: {missing}; pip install openai anthropic", file=sys.stderr)
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent / "fixtures"

# Fixture -> (what differs, why). Everything else must be equal.
KNOWN = {
    "anthropic/litellm-mock-text": ({"text", "usage", "end"}, "the SDK finds no events in a body that is no stream"),
    "anthropic/aimock-disconnect": ({"error"}, "the SDK does not notice that a message has no end"),
    "anthropic/aimock-truncated": ({"error"}, "the SDK does not notice that a message has no end"),
    "anthropic/llamacpp-qwen0.5b-tool-length": ({"calls"}, "the SDK gives a call that the limit cut, with half its arguments"),
    "responses/aimock-disconnect": ({"error"}, "the SDK does not notice that a response has no end"),
    "responses/aimock-truncated": ({"error"}, "the SDK does not notice that a response has no end"),
    "responses/llamacpp-qwen0.5b-nostream-tool": ({"calls", "usage", "end"}, "the SDK finds no events in a body that is no stream"),
}


def serve(body, status):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            self.send_header("content-type", "text/event-stream" if status == 200 else "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def empty():
    return {"text": "", "thinking": "", "calls": [], "usage": None, "end": None, "error": None, "thoughts": []}


ANTHROPIC_ENDS = {"end_turn": "Stop", "stop_sequence": "Stop", "tool_use": "ToolUse", "max_tokens": "Length", "refusal": "Refusal", "pause_turn": "Pause"}


def read_anthropic(url):
    all = empty()
    client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0)
    message = None
    try:
        with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream:
            for _ in stream:
                message = stream.current_message_snapshot
    except anthropic.APIError as error:
        all["error"] = type(error).__name__
    if message is None:
        return all
    for block in message.content:
        if block.type == "text":
            all["text"] += block.text
        elif block.type == "thinking":
            all["thinking"] += block.thinking
            if block.signature:
                all["thoughts"].append({"type": "thinking", "thinking": block.thinking, "signature": block.signature})
        elif block.type == "tool_use":
            all["calls"].append({"id": block.id, "name": block.name, "arguments": getattr(block, "input", None) or {}})
    usage = message.usage
    cached = usage.cache_read_input_tokens or 0
    prompt = (usage.input_tokens or 0) + cached + (usage.cache_creation_input_tokens or 0)
    if prompt or usage.output_tokens:
        all["usage"] = {"prompt": prompt, "cached": cached, "completion": usage.output_tokens}
    if message.stop_reason:
        all["end"] = ANTHROPIC_ENDS.get(message.stop_reason, message.stop_reason)
    return all


def read_responses(url):
    """The events one by one: the SDK's own folding wants numbers that llama.cpp does not send."""
    all = empty()
    client = openai.OpenAI(base_url=url + "/v1", api_key="x", max_retries=0)
    try:
        for event in client.responses.create(model="m", input="hi", stream=True):
            if event.type == "response.output_text.delta":
                all["text"] += event.delta
            elif event.type == "response.reasoning_summary_text.delta":
                all["thinking"] += event.delta
            elif event.type == "response.output_item.done" and event.item.type == "function_call":
                item = event.item
                all["calls"].append({"id": item.call_id, "name": item.name, "arguments": json.loads(item.arguments)})
            elif event.type in ("response.completed", "response.incomplete"):
                usage = event.response.usage
                if usage and usage.total_tokens:
                    details = usage.input_tokens_details
                    cached = (details.cached_tokens if details else 0) or 0
                    all["usage"] = {"prompt": usage.input_tokens, "cached": cached, "completion": usage.output_tokens}
                all["end"] = "Length" if event.type.endswith("incomplete") else "ToolUse" if all["calls"] else "Stop"
    except openai.APIError as error:
        all["error"] = type(error).__name__
    return all


def main(out):
    wrong = compared = 0
    for folder, read in (("anthropic", read_anthropic), ("responses", read_responses)):
        for path in sorted((ROOT / folder).glob("*.sse")):
            name = f"{folder}/{path.stem}"
            ours = json.loads((out / folder / f"{path.stem}.json").read_text())
            body = path.read_bytes()
            server = serve(body, 429 if "err429" in name else 400 if "-err-" in name else 200)
            theirs = read(f"http://127.0.0.1:{server.server_port}")
            server.shutdown()
            fields = ["text", "thinking", "calls", "usage", "end"] + (["thoughts"] if folder == "anthropic" else [])
            differs = {it for it in fields if ours[it] != theirs[it]}
            if bool(ours["error"]) != bool(theirs["error"]):
                differs.add("error")
            known, why = KNOWN.get(name, (set(), ""))
            compared += 1
            if differs == known:
                print(f"same    {name}" + (f" (but {', '.join(sorted(known))}: {why})" if known else ""))
            else:
                wrong += 1
                print(f"DIFFERS {name}: {sorted(differs)}, expected {sorted(known)}")
                for it in sorted(differs | known):
                    print(f"    {it}: sheaf {ours[it]!r}, SDK {theirs[it]!r}")
    print(f"{compared} answers compared with openai {openai.__version__} and anthropic {anthropic.__version__}, {wrong} unexpected")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
