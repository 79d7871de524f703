#!/usr/bin/env python3
"""Do programs made for Cursor's command line drive sheaf?

    python3 -m venv /tmp/sdk && /tmp/sdk/bin/pip install cursor-cli==0.1.13
    npm install --prefix /tmp/sdk/npm @ai-hero/sandcastle@0.12.0
    cargo build && /tmp/sdk/bin/python tests/sdk/cursor.py target/debug/sheaf /tmp/sdk/npm

A link to sheaf stands on the path as `cursor-agent` and `agent`; a model server with a script answers it. The PyPI package
`cursor-cli` runs it and formats what it prints; the parser of npm's `@ai-hero/sandcastle` reads the command that the
package itself builds. Ends with 77 when one of them is not there, having compared with the others.
"""
import http.server, io, json, os, pathlib, shutil, subprocess, sys, tempfile, threading

if len(sys.argv) < 2 or not pathlib.Path(sys.argv[1]).exists():
    sys.exit(__doc__)
SHEAF = pathlib.Path(sys.argv[1]).resolve()
NPM = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None

STEPS = [
    ("I will look.", [("read_file", {"target_file": "README.md"}), ("delete_file", {"target_file": "README.md"})]),
    ("Now the change.", [("write", {"file_path": "new.txt", "contents": "a\nb\n"}), ("run_terminal_cmd", {"command": "echo ran", "is_background": False, "required_permissions": ["all"]}),
        ("web_search", {"search_term": "x"})]),
    ("All is done now.", []),
]


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        messages = request["messages"]
        asked = max(nth for nth, it in enumerate(messages) if it["role"] == "user")
        step = sum(it["role"] == "assistant" for it in messages[asked:])
        text, calls = STEPS[min(step, len(STEPS) - 1)]
        chunks = [{"content": word + " "} for word in text.split(" ")[:-1]] + [{"content": text.split(" ")[-1]}]
        chunks += [{"tool_calls": [{"index": nth, "id": f"call_{step}_{nth}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]}
            for nth, (name, arguments) in enumerate(calls)]
        lines = [{"choices": [{"index": 0, "delta": it}]} for it in chunks]
        lines.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]})
        body = "".join(f"data: {json.dumps(it)}\n\n" for it in lines) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
base = pathlib.Path(tempfile.mkdtemp(prefix="sheaf-cursor-"))
(base / "bin").mkdir()
for name in ("cursor-agent", "agent"):
    (base / "bin" / name).symlink_to(SHEAF)
os.environ.update({
    "HOME": str(base),
    "PATH": f"{base / 'bin'}:{os.environ['PATH']}",
    "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}/v1",
    "OPENAI_API_KEY": "k",
    "OPENAI_MODEL": "scripted",
})
for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
    os.environ.pop(name, None)

missing, failed = [], []


def check(sentence, holds, found=""):
    print(("ok      " if holds else "FAILED  ") + sentence)
    if not holds:
        print(found)
        failed.append(sentence)


def fresh():
    work = base / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    (work / "README.md").write_text("# Shop\n")
    return work


def with_cursor_cli():
    try:
        from cursor_cli import cursor_cli
        from cursor_cli.formatter import StreamJsonFormatter
    except ImportError as error:
        return missing.append(f"cursor-cli ({error})")
    work = fresh()
    # It gives what a command with the exit code 0 printed, so the deletion has to be allowed.
    answer = cursor_cli("go", json=True, workspace=str(work), save_session=False, force=True)
    check("cursor-cli: the result is one object with the answer", answer.get("result") == "".join(it[0] for it in STEPS), answer)
    again = cursor_cli("more", json=True, workspace=str(work), save_session=False, force=True, chat_id=answer["session_id"])
    check("cursor-cli: a conversation goes on under its id", again.get("session_id") == answer["session_id"], again)
    text = cursor_cli("go", json=False, workspace=str(work), save_session=False, force=True)
    check("cursor-cli: text is the text", "All is done now." in text, text)

    work = fresh()
    lines = subprocess.run(["cursor-agent", "--trust", "-p", "go", f"--workspace={work}", "--output-format", "stream-json", "--stream-partial-output"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL)
    out = io.StringIO()
    formatter = StreamJsonFormatter(output=out, use_colors=False)
    for line in lines.stdout.splitlines():
        formatter.process_line(line)
    shown = out.getvalue()
    for wanted in ["[SYSTEM:init]", "Model: scripted", "[USER] go", "Reading README.md", "Creating new.txt", "$ echo ran", "REJECTED: it wants to run outside the sandbox"]:
        # Where there is no sandbox at all, that is the reason.
        wanted = [wanted, "REJECTED: there is no sandbox"] if wanted.startswith("REJECTED") else [wanted]
        check(f"cursor-cli shows: {wanted[0]}", any(it in shown for it in wanted), shown)
    for text, _ in STEPS:
        check(f"cursor-cli shows once: {text}", shown.split("[RESULT")[0].count(text) == 1, shown)
    check("what was not allowed ends with 4", lines.returncode == 4, lines)


READER = """
import { cursor } from '@ai-hero/sandcastle';
import { spawnSync } from 'node:child_process';
const provider = cursor('scripted');
const built = provider.buildPrintCommand({ prompt: 'go', dangerouslySkipPermissions: true });
const command = typeof built === 'string' ? built : built.command;
const ran = spawnSync('sh', ['-c', command], { cwd: process.argv[2], encoding: 'utf8', input: built.stdin ?? '' });
const events = ran.stdout.split('\\n').flatMap((line) => provider.parseStreamLine(line));
console.log(JSON.stringify({ command, status: ran.status, error: ran.stderr, events }));
"""


def with_sandcastle():
    if not NPM or not (NPM / "node_modules/@ai-hero/sandcastle").exists() or not shutil.which("node"):
        return missing.append("@ai-hero/sandcastle or node")
    work = fresh()
    script = NPM / "read.mjs"
    script.write_text(READER)
    ran = subprocess.run(["node", str(script), str(work)], capture_output=True, text=True)
    if ran.returncode:
        return check("sandcastle can be loaded", False, ran.stderr)
    said = json.loads(ran.stdout)
    events = said["events"]
    print("        ran:", said["command"])
    check("sandcastle: its own command ends well", said["status"] == 0, said)
    check("sandcastle: there is one session", sum(it["type"] == "session_id" for it in events) == 1, events)
    texts = [it["text"] for it in events if it["type"] == "text"]
    check("sandcastle: every segment, once", texts == ["go"] * (texts[:1] == ["go"]) + [it[0] for it in STEPS], texts)
    calls = [(it["name"], it["args"]) for it in events if it["type"] == "tool_call"]
    wanted = [("Read", "README.md"), ("Write", "new.txt"), ("web_search", json.dumps({"search_term": "x"}, separators=(",", ":")))]
    check("sandcastle: every call that it knows", sorted(calls) == sorted(wanted), calls)
    results = [it["result"] for it in events if it["type"] == "result"]
    check("sandcastle: one result, the whole text", results == ["".join(it[0] for it in STEPS)], results)


with_cursor_cli()
with_sandcastle()
shutil.rmtree(base, ignore_errors=True)
for name in missing:
    print(f"SKIPPED, NOTHING WAS COMPARED WITH: {name}", file=sys.stderr)
sys.exit(1 if failed else 77 if missing else 0)
