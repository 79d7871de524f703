#!/usr/bin/env python3
"""Do the examples of docs/serve.md hold: the systemd unit, nginx and Caddy in front of `sheaf serve`?

    apt-get install nginx caddy systemd
    cargo build && python3 tests/real/proxies.py target/debug/sheaf

Takes the blocks out of the page as they stand there. The unit goes through `systemd-analyze verify`; each proxy is started
with its block (nginx with TLS around it), and through it a stream has to come piece by piece, a second request has to stop
it, and whoever leaves has to be noticed. Ends with 77 when one of the programs is not there, having tried the others.
"""
import json, os, pathlib, re, shutil, socket, ssl, subprocess, sys, tempfile, time

if len(sys.argv) < 2 or not pathlib.Path(sys.argv[1]).exists():
    sys.exit(__doc__)
SHEAF = pathlib.Path(sys.argv[1]).resolve()
PAGE = (pathlib.Path(__file__).parents[2] / "docs/serve.md").read_text()
TOKEN = "a-token-for-the-proxies-of-tests"
HOST = "agent.example.org"
base = pathlib.Path(tempfile.mkdtemp(prefix="sheaf-proxies-"))
missing, failed = [], []


def block(word):
    return re.search(rf"^```{word}\n(.*?)^```", PAGE, re.S | re.M).group(1)


def check(sentence, holds, found=""):
    print(("ok      " if holds else "FAILED  ") + sentence)
    if not holds:
        print(found)
        failed.append(sentence)


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def unit():
    if not shutil.which("systemd-analyze"):
        return missing.append("systemd-analyze")
    path = base / "sheaf.service"
    # The program lies elsewhere here.
    path.write_text(block("ini").replace("/usr/local/bin/sheaf", str(SHEAF)))
    ran = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True)
    check("systemd has nothing to say about the unit", ran.returncode == 0 and not ran.stderr.strip(), ran.stderr)


class Answer:
    def __init__(self, port, method, path, body=None):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.socket = context.wrap_socket(socket.create_connection(("127.0.0.1", port), 10), server_hostname=HOST)
        body = "" if body is None else json.dumps(body)
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        self.text, self.reads = "", 0

    def until(self, mark):
        while mark not in self.text:
            part = self.socket.recv(1 << 16)
            if not part:
                break
            self.text, self.reads = self.text + part.decode(), self.reads + 1
        return self.text


def ask(port):
    return Answer(port, "POST", "/api/v1/chat/completions", {"model": "m", "stream": True, "messages": [{"role": "user", "content": "go"}]})


def through(name, port):
    stream = ask(port)
    said = stream.until("word 20 ")
    check(f"{name}: a stream comes piece by piece", said.startswith("HTTP/1.1 200") and stream.reads > 10, said)
    name_of = re.search(r'"id":"(chat_[^"]+)"', said).group(1)
    stopped = Answer(port, "POST", f"/api/v1/chat/responses/{name_of}/cancel", {}).until("\r\n\r\n")
    check(f"{name}: another request stops it", stopped.startswith("HTTP/1.1 202"), stopped)
    rest = stream.until('"finishReason":"cancelled"')
    check(f"{name}: and the stream says so", '"finishReason":"cancelled"' in rest and "word 60 " not in rest, rest)
    stream = ask(port)
    name_of = re.search(r'"id":"(chat_[^"]+)"', stream.until("word 5 ")).group(1)
    stream.socket.close()
    seen = ""
    for _ in range(200):
        seen = Answer(port, "GET", f"/api/v1/chat/responses/{name_of}").until('"finishReason"')
        seen = seen.split('"documents"')[0]
        if "streaming" not in seen:
            break
        time.sleep(0.05)
    check(f"{name}: who leaves is noticed", "streaming" not in seen, seen)


def proxy(name, command, port):
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": str(base)})
    try:
        for _ in range(200):
            try:
                Answer(port, "GET", "/healthz").until("\r\n")
                break
            except (OSError, ssl.SSLError):
                time.sleep(0.1)
        through(name, port)
    finally:
        running.terminate()
        running.wait()


def nginx(upstream):
    if not shutil.which("nginx") or not shutil.which("openssl"):
        return missing.append("nginx or openssl")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", base / "key.pem", "-out", base / "cert.pem", "-days", "2", "-subj", f"/CN={HOST}"], check=True, capture_output=True)
    port = free_port()
    location = block("nginx").replace("127.0.0.1:8643", f"127.0.0.1:{upstream}")
    (base / "nginx.conf").write_text(f"daemon off; pid {base}/nginx.pid; error_log {base}/nginx.err;\nevents {{}}\nhttp {{ access_log off;\nserver {{ listen 127.0.0.1:{port} ssl; server_name {HOST}; ssl_certificate {base}/cert.pem; ssl_certificate_key {base}/key.pem;\n{location}\n}} }}\n")
    proxy("nginx", ["nginx", "-p", base, "-c", base / "nginx.conf"], port)


def caddy(upstream):
    if not shutil.which("caddy"):
        return missing.append("caddy")
    port = free_port()
    site = block("caddyfile").replace("127.0.0.1:8643", f"127.0.0.1:{upstream}").replace("{\n", "{\n    tls internal\n", 1)
    (base / "Caddyfile").write_text(f"{{\n    admin off\n    auto_https disable_redirects\n    skip_install_trust\n    http_port {free_port()}\n    https_port {port}\n}}\n{site}")
    proxy("caddy", ["caddy", "run", "--config", base / "Caddyfile", "--adapter", "caddyfile"], port)


events = [("response_start", {"id": "chat_x", "model": "m", "mode": "agent", "created": "2026-01-01T00:00:00Z", "status": "streaming"}), ("document_start", {"id": "doc_001", "type": "text", "sequence": 1, "metadata": {"format": "markdown"}})]
events += [("content_delta", {"documentId": "doc_001", "delta": f"word {it} "}) for it in range(2000)]
events += [("document_end", {"documentId": "doc_001", "metadata": {"format": "markdown"}}), ("done", {"usage": {"promptTokens": 1, "completionTokens": 1, "totalTokens": 2}})]
(base / "slow.sse").write_text("".join(f"event: {kind}\ndata: {json.dumps(data)}\n\n" for kind, data in events))
gateway = subprocess.Popen([SHEAF, "serve", "--listen", "127.0.0.1:0", "--allow-host", HOST, "--replay", base / "slow.sse"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    env={"HOME": str(base), "PATH": os.environ["PATH"], "SHEAF_SERVE_TOKEN": TOKEN, "SHEAF_SERVE_GRACE": "0s"})
try:
    upstream = int(gateway.stdout.readline().rsplit(":", 1)[1])
    unit()
    nginx(upstream)
    caddy(upstream)
finally:
    gateway.terminate()
    gateway.wait()
    shutil.rmtree(base, ignore_errors=True)
for name in missing:
    print(f"SKIPPED, NOTHING WAS TRIED WITH: {name}", file=sys.stderr)
sys.exit(1 if failed else 77 if missing else 0)
