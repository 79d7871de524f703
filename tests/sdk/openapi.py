#!/usr/bin/env python3
"""Does `sheaf serve` do what its OpenAPI description says? schemathesis asks.

    python3 -m venv /tmp/sdk && /tmp/sdk/bin/pip install schemathesis==4.32.5
    cargo build && /tmp/sdk/bin/python tests/sdk/openapi.py target/debug/sheaf [more of schemathesis' options]

A recording answers; conversations are kept, so that a response which was asked for once is there for all that is said about
responses. All checks of schemathesis run, on examples, at the edges of each schema, with random requests and in sequence:

    schemathesis --config-file CONFIG run URL/openapi.json --header 'Authorization: Bearer …' --checks all --generation-deterministic

The one thing that is configured: a schema cannot say that the last message has to be the user's, which events a response has, nor
which members of an undo go together, so requests that fit it may be refused with 400.
"""
import http.client, json, os, pathlib, shutil, subprocess, sys, tempfile

if len(sys.argv) < 2 or not pathlib.Path(sys.argv[1]).exists():
    sys.exit(__doc__)
SHEAF = pathlib.Path(sys.argv[1]).resolve()
TOKEN = "a-token-for-all-that-is-described"
ROOT = pathlib.Path(__file__).parents[2]
tool = pathlib.Path(sys.executable).with_name("schemathesis")
if not tool.exists():
    sys.exit(f"SKIPPED, NOTHING WAS TRIED: there is no {tool}\n{__doc__}")
home = pathlib.Path(tempfile.mkdtemp(prefix="sheaf-openapi-"))
gateway = subprocess.Popen([SHEAF, "serve", "--listen", "127.0.0.1:0", "--stateful", "--replay", ROOT / "tests/fixtures/documents/named.sse", "--speed", "max"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    env={"HOME": str(home), "PATH": os.environ["PATH"], "SHEAF_SERVE_TOKEN": TOKEN})
try:
    port = int(gateway.stdout.readline().rsplit(":", 1)[1])
    asked = http.client.HTTPConnection("127.0.0.1", port)
    asked.request("POST", "/api/v1/chat/completions", json.dumps({"stream": True, "messages": [{"role": "user", "content": "go"}]}), {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"})
    said = asked.getresponse().read().decode()
    begun = json.loads(said.split("data: ", 1)[1].split("\n", 1)[0])
    response, conversation = begun["id"], begun["conversationId"]
    config = home / "schemathesis.toml"
    operations = [f'[[operations]]\ninclude-path = "{path}"\nchecks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "429", "5xx"]\n'
        for path in ("/api/v1/chat/completions", "/api/v1/chat/plan", "/v1/chat/completions", "/v1/responses", "/v1/messages")]
    # Its stream has no end.
    operations.append(f'[[operations]]\ninclude-path-regex = "^/api/v1/conversations/[^/]*(/diff|/input|/cancel)?$"\nparameters = {{ "path.id" = "{conversation}" }}\n')
    operations.append('[[operations]]\ninclude-path = "/api/v1/conversations/{id}/undo"\nparameters = { "path.id" = "' + conversation + '" }\nchecks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "429", "5xx"]\n')
    operations.append(f'[[operations]]\ninclude-path-regex = "^/api/v1/chat/responses/"\nparameters = {{ "path.id" = "{response}" }}\n')
    operations.append('[[operations]]\ninclude-path = "/api/v1/chat/responses/{id}/stream"\nparameters = { "path.id" = "' + response + '", "header.Last-Event-ID" = "1" }\nchecks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "429", "5xx"]\n')
    config.write_text("\n".join(operations))
    ran = subprocess.run([tool, "--config-file", config, "run", f"http://127.0.0.1:{port}/openapi.json", "--header", f"Authorization: Bearer {TOKEN}", "--checks", "all", "--generation-deterministic", *sys.argv[2:]], cwd=home)
finally:
    gateway.terminate()
    gateway.wait()
    shutil.rmtree(home, ignore_errors=True)
sys.exit(ran.returncode)
