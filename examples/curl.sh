#!/usr/bin/env bash
# The same by HTTP: creates a session, pushes a message, waits until it is delivered, closes the session.
# A daemon must run (pi-rpcd start) on PI_RPCD_STATE_DIR, if that is set.
set -euo pipefail

dir=${PI_RPCD_STATE_DIR:-${XDG_STATE_HOME:-$HOME/.local/state}/pi-rpcd}
field() { sed -n "s/^ *\"$1\": \"\(.*\)\",*$/\1/p" "$dir/daemon.json"; }
# By a file that only curl sees: other users can read command lines.
token() { printf 'header = "Authorization: Bearer %s"\n' "$(field token)"; }
post() { curl --silent --show-error --config <(token) --header 'Content-Type: application/json' "$@"; }
unix() { post --unix-socket "$(field socketPath)" http://localhost/v1/rpc --data "$1"; }
tcp() { post "$(field url)/v1/rpc" --data "$1"; }

# Over the Unix socket.
created=$(unix '{"jsonrpc":"2.0","id":1,"method":"session/create","params":{"cwd":"'"$PWD"'"}}')
id=$(sed 's/.*"sessionId":"\([^"]*\)".*/\1/' <<<"$created")
unix '{"jsonrpc":"2.0","id":2,"method":"delivery/push","params":{"sessionId":"'"$id"'",
  "deliveryId":"build-318-'"$id"'","customType":"build","content":"The nightly build is green."}}'
echo

# Over TCP. Answers when the model's provider has accepted the request that carries the push.
tcp '{"jsonrpc":"2.0","id":3,"method":"delivery/wait","params":{"deliveryId":"build-318-'"$id"'"}}'
echo

tcp '{"jsonrpc":"2.0","id":4,"method":"session/close","params":{"sessionId":"'"$id"'"}}'
echo
