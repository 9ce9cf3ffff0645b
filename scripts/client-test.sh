#!/bin/sh
# client-test.sh OPENAPI.JSON DULY: generates TypeScript clients from the
# description of the API, by openapi-typescript and by @hey-api/openapi-ts,
# checks their types, and those of a program that uses each, with tsc, and runs
# both programs against a daemon.
# Where there is no npm, or it reaches no registry, it says so and passes.
set -eu

duly=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
document=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")

skip() {
  printf 'SKIPPED: no clients were generated: %s\n' "$1" >&2
  exit 0
}

command -v npm >/dev/null || skip "there is no npm"
folder=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill "$daemon"; rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --fetch-retries 0 --fetch-timeout 20000 typescript@5.9.3 tsx@4.20.6 @types/node@24.10.1 openapi-typescript@7.13.0 openapi-fetch@0.17.0 \
  @hey-api/openapi-ts@0.99.0 >npm.log 2>&1 || skip "npm install failed: $(tail -n 3 npm.log)"

npx openapi-typescript "$document" -o paths.ts
npx openapi-ts -i "$document" -o sdk -p @hey-api/client-fetch @hey-api/typescript @hey-api/sdk

cat >by_paths.ts <<'TS'
import createClient from "openapi-fetch";
import type { components, paths } from "./paths";

const client = createClient<paths>({ baseUrl: process.env.DULY_SERVER });
const status: components["schemas"]["Status"] = "waiting";
const { data, error } = await client.POST("/v1/tasks", { body: { agent_id: "ada", kind: "digest", payload: { name: "x" }, every: "1h", from: "start", overlap: "skip" } });
const failed = await client.GET("/v1/tasks", { params: { query: { agent_id: "ada", status: ["failed", "cancelled"] } } });
const runs = await client.POST("/v1/work/claim", { body: { kinds: ["digest"], worker: "w1" } });
const ticket: string | undefined = runs.data?.runs[0]?.ticket;
const code: components["schemas"]["Code"] | undefined = error?.code;
const created: boolean | undefined = data?.tasks[0]?.created;
// @ts-expect-error there is no such status
const wrong: components["schemas"]["Status"] = "sleeping";
if (!created || failed.error || !ticket) throw new Error(JSON.stringify({ error, failed, runs }));
export { code, created, status, wrong };
TS
cat >by_sdk.ts <<'TS'
import { client } from "./sdk/client.gen";
import { explain, submit } from "./sdk";
import type { Event, Task } from "./sdk";

client.setConfig({ baseUrl: process.env.DULY_SERVER });
const submitted = await submit({ body: { agent_id: "ada", id: "nightly", kind: "digest", cron: "@daily", payload: { name: "x" } } });
const why = await explain({ path: { agent: "ada", id: "nightly" } });
const task: Task | undefined = why.data?.task;
const type = (e: Event): Event["event"] => e.event;
// @ts-expect-error a path needs its id
const pathless = () => explain({ path: { agent: "ada" } });
if (!submitted.data?.tasks[0]?.created || task?.id !== "nightly") throw new Error(JSON.stringify({ submitted, why }));
export { pathless, submitted, task, type };
TS
npx tsc --noEmit --strict --skipLibCheck --target es2022 --module esnext --moduleResolution bundler by_paths.ts by_sdk.ts
env -u DULY_TOKEN "$duly" daemon --store memory --http 127.0.0.1:0 >daemon.log 2>&1 &
daemon=$!
tries=0
until DULY_SERVER=$(sed -n 's/.*listening url=\([^ ]*\).*/\1/p' daemon.log) && [ -n "$DULY_SERVER" ]; do
  tries=$((tries + 1))
  [ "$tries" -lt 100 ] || { cat daemon.log; exit 1; }
  sleep 0.1
done
export DULY_SERVER
npx tsx by_paths.ts
npx tsx by_sdk.ts
printf 'two clients of %s types pass, and run\n' "$(grep -c '^export type' sdk/types.gen.ts)"
