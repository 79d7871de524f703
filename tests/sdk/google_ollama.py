#!/usr/bin/env python3
"""Do google-genai and ollama (PyPI) read the bodies in tests/fixtures/{gemini,ollama} as sheaf does?

    python3 -m venv /tmp/sdk && /tmp/sdk/bin/pip install google-genai ollama
    SHEAF_SDK_OUT=/tmp/sdk-out cargo test --lib recordings_are_read
    /tmp/sdk/bin/python tests/sdk/google_ollama.py /tmp/sdk-out

Serves the bytes over HTTP on this machine, lets the SDKs read them, and compares with what the tests wrote. Differences that are
known are named in KNOWN and have to be there.
"""
import http.server, importlib.metadata, json, pathlib, sys, threading

try:
    import ollama
    from google import genai
    from google.genai import errors, types
except ImportError as missing:
    print(f"SKIPPED, NOTHING WAS COMPARED: {missing}; pip install google-genai ollama", file=sys.stderr)
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
KNOWN = {
    "gemini/aimock-truncated": ({"error"}, "the SDK does not notice that an answer has no end"),
    "gemini/aimock-tools": ({"end"}, "a finish reason that only aimock writes"),
}


def serve(body, status, media):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            self.send_header("content-type", media if status == 200 else "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def empty():
    return {"text": "", "thinking": "", "calls": [], "usage": None, "end": None, "error": None}


ENDS = {"STOP": "Stop", "MAX_TOKENS": "Length", "SAFETY": "ContentFilter"}


def read_gemini(url):
    all = empty()
    client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=url, retry_options=types.HttpRetryOptions(attempts=1)))
    reason = None
    try:
        for chunk in client.models.generate_content_stream(model="m", contents="hi"):
            if chunk.usage_metadata:
                it = chunk.usage_metadata
                completion = (it.candidates_token_count or 0) + (it.thoughts_token_count or 0)
                usage = {"prompt": it.prompt_token_count or 0, "cached": it.cached_content_token_count or 0, "completion": completion}
                all["usage"] = usage if any(usage.values()) else all["usage"]
            if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
                reason = "SAFETY"
            for candidate in chunk.candidates or []:
                for part in (candidate.content.parts if candidate.content else None) or []:
                    if part.function_call:
                        call = part.function_call
                        all["calls"].append({"id": call.id or "", "name": call.name, "arguments": call.args or {}})
                    elif part.thought:
                        all["thinking"] += part.text or ""
                    else:
                        all["text"] += part.text or ""
                if candidate.finish_reason:
                    reason = candidate.finish_reason.value
    except errors.APIError as error:
        all["error"] = str(error.code)
    if reason and not all["error"]:
        all["end"] = "ToolUse" if all["calls"] and reason == "STOP" else ENDS.get(reason, reason)
    return all


def read_ollama(url):
    all = empty()
    try:
        for chunk in ollama.Client(host=url).chat(model="m", messages=[{"role": "user", "content": "hi"}], stream=True):
            all["text"] += chunk.message.content or ""
            all["thinking"] += chunk.message.thinking or ""
            for call in chunk.message.tool_calls or []:
                all["calls"].append({"id": "", "name": call.function.name, "arguments": dict(call.function.arguments)})
            if chunk.done:
                usage = {"prompt": chunk.prompt_eval_count or 0, "cached": 0, "completion": chunk.eval_count or 0}
                all["usage"] = usage if any(usage.values()) else None
                all["end"] = "Length" if chunk.done_reason == "length" else "ToolUse" if all["calls"] else "Stop"
    except ollama.ResponseError as error:
        all["error"] = str(error.status_code)
    return all


def main(out):
    wrong = compared = 0
    for folder, read, media in (("gemini", read_gemini, "text/event-stream"), ("ollama", read_ollama, "application/x-ndjson")):
        for path in sorted((ROOT / folder).glob("*.sse")):
            name = f"{folder}/{path.stem}"
            ours = json.loads((out / folder / f"{path.stem}.json").read_text())
            server = serve(path.read_bytes(), 429 if "err429" in name else 200, media)
            theirs = read(f"http://127.0.0.1:{server.server_port}")
            server.shutdown()
            differs = {it for it in ("text", "thinking", "calls", "usage", "end") if ours[it] != theirs[it]}
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
    versions = " and ".join(f"{it} {importlib.metadata.version(it)}" for it in ("google-genai", "ollama"))
    print(f"{compared} answers compared with {versions}, {wrong} unexpected")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
