#!/bin/bash
# Runs the client scenarios of the official conformance suite of the Model Context Protocol against sheaf.
#
#   npm install --prefix /tmp/conformance @modelcontextprotocol/conformance@0.1.16    # needs Node 22
#   tests/mcp_conformance.sh target/release/sheaf /tmp/conformance
#
# The browser is a script that follows redirects. Scenarios that register the client beforehand get a config.toml.
set -euo pipefail
if [ -z "${MCP_CONFORMANCE_SCENARIO:-}" ]; then
    SHEAF=$(realpath "$1")
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    mkdir "$scratch/bin"
    printf '#!/bin/sh\ncurl -sL -o /dev/null "$1"\n' >"$scratch/bin/xdg-open"
    chmod +x "$scratch/bin/xdg-open"
    export SHEAF SCRATCH=$scratch
    suite=$2/node_modules/@modelcontextprotocol/conformance/dist/index.js
    failed=0
    for scenario in $("${NODE:-node}" "$suite" list | sed -n '/^Client/,$s/^  - \([^ ]*\).*/\1/p'); do
        result=ok
        "${NODE:-node}" "$suite" client --command "$(realpath "$0")" --scenario "$scenario" \
            >"$scratch/out" 2>&1 || result=FAILED
        echo "$scenario: $result, $(grep '^Passed' "$scratch/out" || true)"
        [ "$result" = ok ] || failed=1
    done
    exit "$failed"
fi

# The suite starts this with the address of its server.
HOME=$(mktemp -d -p "$SCRATCH")
export HOME PATH="$SCRATCH/bin:$PATH"
unset SSH_CONNECTION
cd "$HOME"
target=${!#}
call=()
case $MCP_CONFORMANCE_SCENARIO in
    tools_call) call=(--call add_numbers --arguments '{"a":5,"b":3}') ;;
    elicitation*) call=(--call test_client_elicitation_defaults) ;;
    sse-retry) call=(--call test_reconnection) ;;
    auth/basic-cimd) call=(--call test-tool --client-id https://conformance-test.local/client-metadata.json) ;;
    auth/*) call=(--call test-tool) ;;
esac
case $MCP_CONFORMANCE_SCENARIO in
    auth/pre-registration | auth/client-credentials-*)
        mkdir -p .config/sheaf
        python3 - "$target" >.config/sheaf/config.toml <<'PYTHON'
import json, os, sys
given = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])
print(f"[mcp.it]\nurl = '{sys.argv[1]}'\nclient_id = '{given['client_id']}'")
if "client_secret" in given:
    print(f"client_secret = '{given['client_secret']}'")
if "private_key_pem" in given:
    with open(os.open("key.pem", os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        file.write(given["private_key_pem"])
    print("client_key_file = '~/key.pem'")
if "credentials" in os.environ["MCP_CONFORMANCE_SCENARIO"]:
    print("sign_in = 'client'")
PYTHON
        chmod 600 .config/sheaf/config.toml
        target=it
        ;;
esac
exec "$SHEAF" mcp test "$target" --login "${call[@]}" </dev/null
