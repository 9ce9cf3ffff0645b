#!/bin/sh
# mcp-test.sh FOLDER DULY: the official clients of the Model Context Protocol
# against two daemons of one Redis, one of which is killed in the midst of a
# call, and the server scenarios of the official conformance kit that are about
# what duly offers. FOLDER has the program that calls, and what it calls.
# Where there is no npm, or it reaches no registry, it says so and passes.
set -eu

duly=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
from=$(cd "$1" && pwd)
redis_server=${DULY_TEST_REDIS_SERVER:-$("$(dirname "$0")"/redis-server.sh)}

skip() {
  printf 'SKIPPED: no official client of MCP was run: %s\n' "$1" >&2
  exit 0
}

command -v npm >/dev/null || skip "there is no npm"
folder=$(mktemp -d)
started=
end() {
  for pid in $started; do kill "$pid" 2>/dev/null || :; done
  wait
  rm -rf "$folder"
}
trap end EXIT
cd "$folder"
cp "$from"/*.mjs "$from"/*.yaml "$from"/package.json .
npm install --silent --no-audit --no-fund --fetch-retries 0 --fetch-timeout 20000 >npm.log 2>&1 || skip "npm install failed: $(tail -n 3 npm.log)"

# free prints a port that nothing listens on.
free() { node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })'; }

# begin FILE [FLAGS]: a daemon; its address is in url, its process in pid.
begin() {
  url=http://127.0.0.1:$(free)
  "$duly" daemon -c "$@" --http "${url#http://}" >"daemon-${url##*:}.log" 2>&1 &
  pid=$!
  started="$started $pid"
  until curl -fs "$url/readyz" >/dev/null; do kill -0 "$pid"; sleep 0.1; done
}

"$redis_server" --port 0 --unixsocket "$folder/redis.sock" --save '' --appendonly no >redis.log 2>&1 &
started=$!
until [ -S redis.sock ]; do kill -0 "$started"; sleep 0.1; done
export HOME="$folder" DULY_REDIS_URL="unix://$folder/redis.sock" ADA=ada-0123456789abcdef BOB=bob-0123456789abcdef
begin duly.yaml
first=$url victim=$pid
begin duly.yaml
DULY=$duly FILE=$folder/duly.yaml node clients.mjs "$first" "$url" "$victim"

kit=@modelcontextprotocol/conformance@0.1.16
mkdir kit && cd kit
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund "$kit" node@22 >../npm.log 2>&1 || skip "npm install failed: $(tail -n 3 ../npm.log)"
cd ..
begin conformance.yaml --prefix conformance:
for scenario in server-initialize ping tools-list tools-call-simple-text tools-call-error json-schema-2020-12 resources-list dns-rebinding-protection; do
  kit/node_modules/node/bin/node kit/node_modules/.bin/conformance server --url "$url/mcp" --scenario "$scenario" >"$scenario.log" 2>&1 ||
    { tail -n 30 "$scenario.log"; exit 1; }
  echo "conformance: $scenario"
done
