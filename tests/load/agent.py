#!/usr/bin/env python3
"""How long the agent takes: from Enter to the first request, and from a tool's end to the next one.

    cargo build --release && tests/load/agent.py target/release/sheaf [--files 50000] [--rounds 15]

Makes a repository with so many files, starts the program in a terminal, waits two seconds, types a message and presses Enter. A
server on this machine notes when each request has arrived whole; it answers with a call of `read_file`, and then with a word. The
second figure counts from the last byte of that answer, so it holds the reading of the file as well. Prints the median and the worst of all
rounds in milliseconds. For grep: `SHEAF_BENCH_TREE=FOLDER cargo bench --bench parts search`.
"""
import argparse, fcntl, http.server, json, os, pathlib, pty, select, shutil, signal, statistics, struct, subprocess, tempfile, termios, threading, time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("sheaf")
parser.add_argument("--files", type=int, default=50_000)
parser.add_argument("--rounds", type=int, default=15)
args = parser.parse_args()

came, answered = [], []


class Server(http.server.BaseHTTPRequestHandler):
    # Its head and its body go out one behind the other: the second would wait for the word that the first has come.
    disable_nagle_algorithm = True
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        body = b'{"object":"list","data":[{"id":"m","object":"model"}]}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        came.append(time.perf_counter())
        is_result = request["messages"][-1]["role"] == "tool"
        call = {"index": 0, "id": f"c{len(came)}", "type": "function", "function": {"name": "read_file", "arguments": '{"target_file":"README.md"}'}}
        delta, finish = ({"content": "done"}, "stop") if is_result else ({"tool_calls": [call]}, "tool_calls")
        chunk = lambda delta, finish: f"data: {json.dumps({'id': 'c', 'object': 'chat.completion.chunk', 'created': 1, 'model': 'm', 'choices': [{'index': 0, 'delta': delta, 'finish_reason': finish}]})}\n\n"
        body = (chunk(delta, None) + chunk({}, finish) + "data: [DONE]\n\n").encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
        answered.append(time.perf_counter())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
server.daemon_threads = True
server.handle_error = lambda *_: None
threading.Thread(target=server.serve_forever, daemon=True).start()

home = pathlib.Path(tempfile.mkdtemp(prefix="sheaf-load-"))
work = home / "work"
for at in range(args.files):
    path = work / f"part{at // 1000:02}" / f"module{at // 50 % 20}" / f"file{at}.rs"
    if at % 50 == 0:
        path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"pub fn f{at}() {{}}\n")
(work / "README.md").write_text("# Many files\n")
subprocess.run(["git", "init", "-q", str(work)], check=True)

firsts, seconds = [], []
try:
    for _ in range(args.rounds):
        came.clear()
        answered.clear()
        shutil.rmtree(home / "home", ignore_errors=True)
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(work)
            settings = ["provider=x", "providers.x.kind=openai", f"providers.x.base_url=http://127.0.0.1:{server.server_port}/v1", "providers.x.api_key=k"]
            words = [os.path.abspath(args.sheaf), "--model", "m", *(it for pair in (("--set", it) for it in settings) for it in pair)]
            os.execve(words[0], words, {"PATH": os.environ["PATH"], "HOME": str(home / "home"), "TERM": "xterm-256color"})
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

        def drain(until):
            while time.perf_counter() < until and len(came) < 2:
                if select.select([fd], [], [], 0.005)[0]:
                    os.read(fd, 65536)

        drain(time.perf_counter() + 2)
        os.write(fd, b"read the README")
        drain(time.perf_counter() + 0.3)
        pressed = time.perf_counter()
        os.write(fd, b"\r")
        drain(pressed + 20)
        if len(came) >= 2:
            firsts.append((came[0] - pressed) * 1000)
            seconds.append((came[1] - answered[0]) * 1000)
        os.kill(pid, signal.SIGTERM)
        end = time.perf_counter() + 3
        while time.perf_counter() < end and os.waitpid(pid, os.WNOHANG)[0] == 0:
            if select.select([fd], [], [], 0.01)[0]:
                try:
                    os.read(fd, 65536)
                except OSError:
                    pass
        os.close(fd)
finally:
    shutil.rmtree(home, ignore_errors=True)
for name, times in (("Enter to first request", firsts), ("tool's end to next request", seconds)):
    if times:
        print(f"{name:28} median {statistics.median(times):6.1f} ms  worst {max(times):6.1f} ms  of {len(times)}")
    else:
        print(f"{name:28} nothing came")
