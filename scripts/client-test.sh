#!/bin/sh
# client-test.sh OPENAPI.JSON: generates TypeScript clients from the
# description of the API, by openapi-typescript and by @hey-api/openapi-ts,
# and checks their types, and those of a program that uses each, with tsc.
# Where there is no npm, or it reaches no registry, it says so and passes.
set -eu

document=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")

skip() {
  printf 'SKIPPED: no clients were generated: %s\n' "$1" >&2
  exit 0
}

command -v npm >/dev/null || skip "there is no npm"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund typescript@5.9.3 openapi-typescript@7.13.0 openapi-fetch@0.17.0 \
  @hey-api/openapi-ts@0.99.0 >npm.log 2>&1 || skip "npm install failed: $(tail -n 3 npm.log)"

npx openapi-typescript "$document" -o paths.ts
npx openapi-ts -i "$document" -o sdk -p @hey-api/client-fetch @hey-api/typescript @hey-api/sdk

cat >by_paths.ts <<'TS'
import createClient from "openapi-fetch";
import type { components, paths } from "./paths";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8080" });
const status: components["schemas"]["Status"] = "waiting";
const { data, error } = await client.POST("/v1/tasks", { body: { agent_id: "ada", kind: "digest", every: "1h", overlap: "skip" } });
const code: components["schemas"]["Code"] | undefined = error?.code;
const created: boolean | undefined = data?.tasks[0]?.created;
// @ts-expect-error there is no such status
const wrong: components["schemas"]["Status"] = "sleeping";
export { code, created, status, wrong };
TS
cat >by_sdk.ts <<'TS'
import { explain, submit } from "./sdk";
import type { Event, Task } from "./sdk";

const submitted = await submit({ body: { agent_id: "ada", kind: "digest", cron: "@daily" } });
const why = await explain({ path: { agent: "ada", id: "nightly" } });
// 208 is for senders that sign: a program with a token never gets it, but the description does not know that.
const task: Task | undefined = why.data && "task" in why.data ? why.data.task : undefined;
const type = (e: Event): Event["event"] => e.event;
// @ts-expect-error a path needs its id
await explain({ path: { agent: "ada" } });
export { submitted, task, type };
TS
npx tsc --noEmit --strict --skipLibCheck --target es2022 --module esnext --moduleResolution bundler by_paths.ts by_sdk.ts
printf 'two clients of %s types pass\n' "$(grep -c '^export type' sdk/types.gen.ts)"
