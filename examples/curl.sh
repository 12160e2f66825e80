#!/usr/bin/env bash
# The same by HTTP: creates a session, pushes a message, waits until it is delivered, closes the session.
# A daemon must run (pi-rpcd start) on PI_RPCD_STATE_DIR, if that is set.
set -euo pipefail

dir=${PI_RPCD_STATE_DIR:-${XDG_STATE_HOME:-$HOME/.local/state}/pi-rpcd}
field() { sed -n "s/^ *\"$1\": \"\(.*\)\",*$/\1/p" "$dir/daemon.json"; }
# By a file that only curl sees: other users can read command lines.
token() { printf 'header = "Authorization: Bearer %s"\n' "$(field token)"; }
call() { curl --silent --show-error --config <(token) --header 'Content-Type: application/json' "$@"; }
unix() { call --unix-socket "$(field socketPath)" "http://localhost$1" "${@:2}"; }
tcp() { call "$(field url)$1" "${@:2}"; }

# JSON-RPC, over the Unix socket.
# The directory may have any name: JSON of it is made by a program that knows how, Node here, and the answer is read by it.
create='JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/create", params: { cwd: process.cwd() } })'
created=$(unix /v1/rpc --data "$(node -p "$create")")
id=$(node -p 'JSON.parse(process.argv[1]).result.sessionId' "$created")

# A path of its own, over TCP. Answers when the model's provider has accepted the request that carries the push.
tcp "/v1/sessions/$id/deliveries?until=delivered" \
  --data '{"deliveryId":"build-318-'"$id"'","customType":"build","content":"The nightly build is green."}'
echo
unix "/v1/deliveries/build-318-$id?until=answered"
echo

tcp /v1/rpc --data '{"jsonrpc":"2.0","id":2,"method":"session/close","params":{"sessionId":"'"$id"'"}}'
echo
