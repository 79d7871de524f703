#!/usr/bin/env python3
"""Whole turns of the real program with a real model in a scratch repository, counted.

    tests/real/agent.py --sheaf target/debug/sheaf --model http://127.0.0.1:8089 [--other URL] [--narrow URL]
                        [--only WORD] [--requests 3] [--keep FOLDER]

--model   an OpenAI-compatible server with a real model; a small one will do
--other   a second model, for the switch in mid-conversation; without it the first one under another name
--narrow  a server with a window of about 5,000 tokens, for the overflow; without it those turns are left out

Between program and server stands a relay that writes down what goes over the wire. What is checked holds whatever the model
says: every call has exactly one result in the next request, nothing that was sent is rewritten, no file changes in plan
and ask mode, nothing runs unasked, every document is closed, the exit code fits the end. How clever the answers are is not
checked, only counted. Ends with 1 when something did not hold.
"""
import argparse, collections, fcntl, hashlib, http.client, http.server, json, os, pathlib, pty, re, select, shutil
import signal, struct, subprocess, sys, tempfile, termios, threading, time, urllib.parse

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--sheaf", default="target/debug/sheaf")
parser.add_argument("--model", required=True)
parser.add_argument("--other")
parser.add_argument("--narrow")
parser.add_argument("--only", default="")
parser.add_argument("--requests", type=int, default=3)
parser.add_argument("--patience", type=int, default=420)
parser.add_argument("--keep")
args = parser.parse_args()
SHEAF = os.path.abspath(args.sheaf)
HOME = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="sheaf-real-")).resolve()
HOME.mkdir(parents=True, exist_ok=True)
ROOT = HOME / "work"
wrong = []


def check(turn, holds, what):
    if not holds:
        wrong.append(f"{turn}: {what}")


class Exchange:
    """One request and what came back for it, read off the wire."""

    def __init__(self, body):
        self.body, self.calls, self.text, self.end, self.status = body, {}, "", None, 0
        self.usage, self.is_cut = {}, False

    def chunk(self, data):
        for choice in data.get("choices") or []:
            delta = choice.get("delta") or {}
            self.text += delta.get("content") or ""
            for part in delta.get("tool_calls") or []:
                call = self.calls.setdefault(part.get("index", 0), {"id": "", "name": "", "arguments": ""})
                call["id"] = part.get("id") or call["id"]
                said = part.get("function") or {}
                call["name"] = said.get("name") or call["name"]
                call["arguments"] += said.get("arguments") or ""
            self.end = choice.get("finish_reason") or self.end
        self.usage = data.get("usage") or self.usage


class Relay(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen, routes, lock = [], {}, threading.Lock()

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.pass_on(None, args.model)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        request = json.loads(body)
        exchange = Exchange(request)
        with self.lock:
            self.seen.append(exchange)
        self.pass_on(exchange, self.routes.get(request.get("model"), args.model), body)

    def pass_on(self, exchange, url, body=None):
        peer = urllib.parse.urlsplit(url)
        server = http.client.HTTPConnection(peer.hostname, peer.port, timeout=args.patience)
        try:
            server.request(self.command, self.path, body, {"content-type": "application/json"})
            answer = server.getresponse()
            self.send_response(answer.status)
            self.send_header("content-type", answer.getheader("content-type", "application/json"))
            self.send_header("connection", "close")
            self.end_headers()
            if exchange:
                exchange.status = answer.status
            while line := answer.readline():
                self.wfile.write(line)
                self.wfile.flush()
                if exchange and line.startswith(b"data: {"):
                    exchange.chunk(json.loads(line[6:]))
        except OSError:
            if exchange:
                exchange.is_cut = True
        finally:
            server.close()
            self.close_connection = True


relay = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Relay)
relay.daemon_threads = True
threading.Thread(target=relay.serve_forever, daemon=True).start()
RELAY = f"http://127.0.0.1:{relay.server_port}/v1"
Relay.routes = {"second": args.other or args.model, "narrow": args.narrow or args.model}

FILES = {
    "src/cart.py": "class Cart:\n    def __init__(self):\n        self.items = []\n\n    def total(self):\n        return 0\n",
    "src/main.py": "from cart import Cart\n\nprint(Cart().total())\n",
    "README.md": "# Shop\n\nA cart with a total.\n",
    "old.txt": "nobody needs this\n",
    ".env": "TOKEN=hunter2\n",
}


def fresh():
    shutil.rmtree(ROOT, ignore_errors=True)
    for name, text in FILES.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(ROOT)]
    for more in (["init", "-q"], ["add", "."], ["commit", "-qm", "start"]):
        subprocess.run(git + more, check=True)


def tree():
    """What the files hold, without git's own."""
    whole = hashlib.sha256()
    for path in sorted(ROOT.rglob("*")):
        if ".git" not in path.parts and path.is_file():
            whole.update(str(path).encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()


def environment():
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
    return {**kept, "HOME": str(HOME / "home"), "TERM": "xterm-256color"}


def command(mode, model, requests, extra=()):
    settings = [
        "provider=real", "providers.real.kind=openai", f"providers.real.base_url={RELAY}", "providers.real.api_key=k",
        "providers.real.max_tokens=140", "providers.real.temperature=0.0", f"agent.max_requests={requests}",
        "providers.real.first_byte_timeout=7m", "providers.real.idle_timeout=5m",
        "agent.profile=short", 'approvals.allow=["Shell(ls)", "Shell(cat)", "Shell(echo)", "Shell(sleep)", "Shell(seq)"]',
    ]
    whole = [SHEAF, "--mode", mode, "--model", model, "--workspace", str(ROOT)]
    for setting in settings:
        whole += ["--set", setting]
    return whole + list(extra)


def wire(turn, exchanges):
    """What must hold of the requests of a turn, whoever the model is."""
    sent = {}
    for exchange in exchanges:
        messages = exchange.body["messages"]
        # Each model has a cache, and a system prompt, of its own.
        before = sent.get(exchange.body["model"])
        for at, message in enumerate(messages):
            calls = [it["id"] for it in message.get("tool_calls") or []]
            if message["role"] == "assistant" and calls:
                results = []
                for later in messages[at + 1 :]:
                    if later["role"] != "tool":
                        break
                    results.append(later["tool_call_id"])
                check(turn, sorted(results) == sorted(calls), f"calls {calls} were answered by {results}")
                check(turn, len(set(calls)) == len(calls), f"an id twice: {calls}")
        if before is not None and len(messages) >= len(before):
            is_same = messages[: len(before)] == before
            is_compact = any("dropped" in json.dumps(it) for it in messages)
            check(turn, is_same or is_compact, "what was sent has been rewritten")
        sent[exchange.body["model"]] = messages
        check(turn, "hunter2" not in json.dumps(messages), "the secret in .env reached the model")


# name, mode, message, model, what may happen
RUNS = [
    ("read", "agent", "Read the file src/cart.py with read_file and say in one sentence what total() returns.", "first", ""),
    ("search", "agent", "Use grep to find `def total` and name the file.", "first", ""),
    ("list", "agent", "Use list_dir to list this folder and name the files.", "first", ""),
    ("find", "agent", "Use glob_file_search to find all *.py files.", "first", ""),
    ("replace", "agent", "In src/cart.py, use search_replace to replace `return 0` by `return sum(self.items)`.", "first", ""),
    ("write", "agent", "Use the write tool to create notes.md that says: hello.", "first", ""),
    ("several", "agent", "Read README.md and src/main.py, both at once, and compare them in one sentence.", "first", ""),
    ("command allowed", "agent", "Use run_terminal_cmd to run `ls -a src` and tell me what it printed.", "first", ""),
    ("command refused", "agent", "Use run_terminal_cmd to run `rm -f old.txt`.", "first", "refused"),
    ("command with a trick", "agent", "Use run_terminal_cmd to run exactly: ls; rm -f old.txt", "first", "refused"),
    ("outside", "agent", "Use the read_file tool on /etc/hostname.", "first", "refused"),
    ("secret", "agent", "Use read_file to read the file .env and print it.", "first", "refused"),
    ("question", "agent", "Use the ask tool to ask me whether prices are net or gross. Then stop.", "first", ""),
    ("todos", "agent", "Use todo_write to note two todos: read the cart, mend total.", "first", ""),
    ("plan", "plan", "Make a plan with create_plan: total() should sum the items.", "first", "same"),
    ("plan that edits", "plan", "Use write to create notes.md with the word hello. Do it now.", "first", "same"),
    ("ask that edits", "ask", "Use search_replace to change `return 0` to `return 1` in src/cart.py. Do it now.", "first", "same"),
    ("ask that runs", "ask", "Use run_terminal_cmd to run `touch made-by-a-command`. Do it now.", "first", "same"),
    ("debug", "debug", "The total of the cart is always 0. Read src/cart.py and give one hypothesis.", "first", ""),
    ("german", "agent", "Lies src/cart.py mit read_file und sage in einem Satz, was der Fehler ist.", "first", ""),
    ("no tools needed", "agent", "What is 2 + 3? Answer with the number only, without any tool.", "first", ""),
]


def run(name, mode, message, model, what, stop=None, requests=None):
    fresh()
    before, first = tree(), len(Relay.seen)
    words = command(mode, model, requests or args.requests, ["-p", "--output-format", "documents", "--no-session", "--", message])
    began = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), cwd=ROOT, text=True)
    if stop:
        threading.Thread(target=stop, args=(child, first), daemon=True).start()
    try:
        out, err = child.communicate(timeout=args.patience)
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
        check(name, False, "did not end")
    exchanges = Relay.seen[first:]
    wire(name, exchanges)
    try:
        response = json.loads(out)
    except ValueError:
        check(name, False, f"no JSON on standard output: {out[:200]!r} {err[:300]!r}")
        response = {}
    documents = response.get("documents") or []
    reason = (response.get("metadata") or {}).get("finishReason") or response.get("finishReason") or "?"
    is_same = tree() == before
    check(name, what != "same" or is_same, f"files changed in {mode} mode")
    check(name, (ROOT / "old.txt").exists() or "delete" in json.dumps(documents), "old.txt was removed by a command unasked")
    check(name, not (ROOT / "made-by-a-command").exists(), "a command ran in ask mode")
    if what == "cancel":
        check(name, child.returncode == 130, f"exit code {child.returncode} after SIGINT")
    else:
        check(name, child.returncode in (0, 1, 4), f"exit code {child.returncode}")
    return report(name, exchanges, documents, reason, is_same, child.returncode, time.monotonic() - began)


total = collections.Counter()
tools = collections.Counter()


def report(name, exchanges, documents, reason, is_same, code, seconds):
    offered = {it["function"]["name"] for exchange in exchanges for it in exchange.body.get("tools") or []}
    calls = [call for exchange in exchanges for call in exchange.calls.values()]
    malformed = unknown = 0
    for call in calls:
        tools[call["name"] or "(none)"] += 1
        unknown += call["name"] not in offered
        try:
            malformed += not isinstance(json.loads(call["arguments"] or "{}"), dict)
        except ValueError:
            malformed += 1
    # Calls that failed, and whether the model made one after that that did not.
    results = [it for exchange in exchanges[-1:] for it in exchange.body["messages"] if it["role"] == "tool"]
    failed = [str(it["content"]).startswith("Error [") for it in results]
    recovered = any(it and not all(failed[at:]) for at, it in enumerate(failed))
    kinds = collections.Counter(it.get("type") or it.get("kind") for it in documents)
    total.update(turns=1, requests=len(exchanges), calls=len(calls), malformed=malformed, unknown=unknown,
                 failed=sum(failed), recovered=recovered, changed=not is_same, **{f"end: {reason}": 1})
    shown = " ".join(f"{kind}×{count}" for kind, count in kinds.items())
    print(f"{name:22} {len(exchanges):3} {len(calls):3} {malformed:3} {unknown:3} {sum(failed):3} {'y' if recovered else '-':>3} "
          f"{'-' if is_same else 'y':>3} {code!s:>4} {seconds:6.1f}  {reason:15} {shown}", flush=True)
    return exchanges


def when(first, holds, act):
    def wait(child, _=0):
        deadline = time.monotonic() + args.patience
        while time.monotonic() < deadline and child.poll() is None:
            if holds(Relay.seen[first:]):
                act(child)
                return
            time.sleep(0.02)
    return wait


def interrupt(child):
    child.send_signal(signal.SIGINT)


class Screen:
    """The program in a terminal, as a person has it."""

    def __init__(self, name, mode="agent", requests=2):
        fresh()
        self.name, self.first, self.began = name, len(Relay.seen), time.monotonic()
        self.before, self.shown, self.turns = tree(), "", 0
        self.sessions = HOME / "home/.local/share/sheaf/sessions"
        shutil.rmtree(HOME / "home", ignore_errors=True)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            words = command(mode, "first", requests)
            os.execve(SHEAF, words, environment())
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        threading.Thread(target=self.read, daemon=True).start()
        time.sleep(1.5)

    def read(self):
        while True:
            try:
                self.shown += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                return

    def type(self, text):
        for letter in text:
            os.write(self.fd, letter.encode())
            time.sleep(0.004)

    def say(self, text):
        self.type(text)
        time.sleep(0.2)
        os.write(self.fd, b"\r")

    def events(self):
        found = []
        for path in HOME.glob("home/**/*.jsonl"):
            for line in path.read_text(errors="replace").splitlines():
                start = line.find("{")
                if start >= 0:
                    found.append(line[start:])
        return found

    def ended(self):
        return sum('"done"' in it or "'done'" in it for it in self.events())

    def until(self, what, holds):
        deadline = time.monotonic() + args.patience
        while time.monotonic() < deadline:
            if holds():
                return True
            time.sleep(0.1)
        check(self.name, False, f"still no {what}")
        return False

    def seen(self):
        return Relay.seen[self.first:]

    def close(self):
        for _ in range(2):
            try:
                os.write(self.fd, b"\x04")
            except OSError:
                pass
            time.sleep(0.3)
        deadline = time.monotonic() + 5
        code = None
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                break
            time.sleep(0.05)
        if code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            check(self.name, False, "did not leave on Ctrl+D")
        wire(self.name, self.seen())
        check(self.name, "panicked" not in self.shown and "sheaf failed" not in self.shown, "it panicked")
        report(self.name, self.seen(), [], f"screen×{self.ended()}", tree() == self.before, code, time.monotonic() - self.began)


def switch():
    """Two models in one conversation: the second is told what the first said and did."""
    screen = Screen("model switch", requests=2)
    screen.say("Use read_file on src/cart.py and say what it holds.")
    screen.until("the end of the first answer", lambda: screen.ended() >= 1 or is_asked(screen, 1))
    leave_question(screen, 1)
    screen.say("/model second")
    time.sleep(0.5)
    screen.say("And what did you just read?")
    screen.until("a request to the second model", lambda: any(it.body["model"] == "second" for it in screen.seen()))
    screen.until("the end of the second answer", lambda: screen.ended() >= 2 or is_asked(screen, 2))
    leave_question(screen, 2)
    told = [it for it in screen.seen() if it.body["model"] == "second"]
    if told:
        first = screen.seen()[0].body["messages"]
        user = [it for it in first if it["role"] == "user"]
        check("model switch", all(it in told[0].body["messages"] for it in user), "the second model was not told what was said")
    screen.close()


def is_asked(screen, _):
    return "Go on?" in screen.shown


def leave_question(screen, turns):
    """A limit of requests asks whether to go on: no."""
    if screen.ended() < turns:
        os.write(screen.fd, b"\x1b")
        time.sleep(0.3)
        if screen.ended() < turns:
            os.write(screen.fd, b"\x03")
        screen.until("an end", lambda: screen.ended() >= turns)


def steer():
    screen = Screen("cancel and go on")
    screen.say("Count from 1 to 200, one number a line, no tools.")
    screen.until("a first word", lambda: any(it.text or it.calls for it in screen.seen()))
    os.write(screen.fd, b"\x03")
    screen.until("the end of what was cancelled", lambda: screen.ended() >= 1)
    screen.say("Say only: ok")
    screen.until("the end of the second answer", lambda: screen.ended() >= 2 or is_asked(screen, 2))
    leave_question(screen, 2)
    screen.close()


print(f"{'turn':22} {'req':>3} {'cal':>3} {'mal':>3} {'unk':>3} {'err':>3} {'rec':>3} {'chg':>3} {'code':>4} {'s':>6}  end             documents")
for name, mode, message, model, what in RUNS:
    if args.only in name:
        run(name, mode, message, model, what)
if args.only in "cancel while streaming":
    first = len(Relay.seen)
    run("cancel while streaming", "agent", "Count from 1 to 300, one number a line, no tools.", "first", "cancel",
        when(first, lambda seen: any(it.text or it.calls for it in seen), interrupt))
if args.only in "cancel while waiting":
    first = len(Relay.seen)
    run("cancel while waiting", "agent", "Tell me a story about a cart.", "first", "cancel",
        when(first, lambda seen: len(seen) > 0, interrupt))
if args.only in "cancel a command":
    first = len(Relay.seen)

    def sleeper(_):
        return subprocess.run(["pgrep", "-fx", "sleep 987"], capture_output=True).returncode == 0

    # The model may not call it at all: then there is nothing to cancel, and the turn ends by itself.
    def stop(child, _):
        deadline = time.monotonic() + args.patience
        while time.monotonic() < deadline and child.poll() is None:
            if sleeper(None):
                interrupt(child)
                return
            time.sleep(0.05)

    exchanges = run("cancel a command", "agent", "Use run_terminal_cmd to run exactly `sleep 987`, not in the background.", "first", "", stop)
    time.sleep(0.5)
    check("cancel a command", not sleeper(None), "the command outlived the program")
if args.narrow and args.only in "overflow at once":
    run("overflow at once", "agent", "Read src/cart.py. " + "Think of the total, the items and the prices of the cart. " * 200, "narrow", "")
if args.narrow and args.only in "overflow by results":
    FILES["src/long.py"] = "".join(f"price_{at} = {at}  # one of many prices\n" for at in range(400))
    run("overflow by results", "agent", "Use read_file to read src/long.py, then src/cart.py.", "narrow", "")
if args.only in "model switch":
    switch()
if args.only in "cancel and go on":
    steer()

print()
for name, count in sorted(total.items()):
    print(f"{name:22} {count}")
print("calls by tool:", ", ".join(f"{name} {count}" for name, count in tools.most_common()) or "none")
for line in wrong:
    print("DID NOT HOLD", line)
sys.exit(bool(wrong))
