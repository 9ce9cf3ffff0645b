#!/bin/sh
# clients.sh VERSION FOLDER: builds the packages of the clients into a folder, installs each into a fresh environment, and uses it there.
# Where there is no pip or no npm, or it reaches no registry, it says so and goes on.
set -eu

version=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R clients/python clients/typescript "$work"
cd "$work"
sed -i.bak "s/^__version__ = .*/__version__ = \"$version\"/" python/duly.py
sed -i.bak "s/\"version\": \"[^\"]*\"/\"version\": \"$version\"/" typescript/package.json
sed -i.bak "s/^export const version = .*/export const version = \"$version\";/" typescript/duly.js

python() {
  python3 -m venv fresh || return 1
  fresh/bin/pip download --quiet --retries 0 --no-deps --dest fresh setuptools >/dev/null 2>&1 || return 2
  fresh/bin/pip wheel --quiet --no-deps --wheel-dir "$out" ./python || return 1
  fresh/bin/pip install --quiet --no-index "$out/duly-$version-py3-none-any.whl" || return 1
  (cd fresh && bin/python -c "import duly; assert duly.__version__ == '$version', duly.__version__; duly.Worker('http://127.0.0.1:1')")
}

typescript() {
  (cd typescript && npm pack --silent --pack-destination "$out" >/dev/null) || return 1
  mkdir app && cd app
  echo '{"private": true, "type": "module"}' >package.json
  npm install --silent --no-audit --no-fund --fetch-retries 0 --fetch-timeout 20000 "$out/duly-$version.tgz" typescript@5.9.3 @types/node@24.10.1 >npm.log 2>&1 || return 2
  cat >worker.ts <<'TS'
import { Client, Worker, snooze, verify, version } from "duly";

const worker = new Worker({ url: "http://127.0.0.1:1", concurrency: 2 });
worker.handle<{ name: string }>("hello", async (run) => {
  if (run.attempt > 3) throw snooze("10m");
  const text: string = await run.step("greet", () => "hello " + run.payload.name);
  // @ts-expect-error the payload has no such field
  return { text, wrong: run.payload.nam };
});
export const use = [verify, new Client({ url: "http://127.0.0.1:1" }).submit, version satisfies string];
TS
  npx tsc --noEmit --strict --target es2022 --module nodenext worker.ts || return 1
  node -e "import('duly').then((d) => { if (d.version !== '$version') throw new Error(d.version) })" || return 1
}

for language in python typescript; do
  tool=npm
  [ $language = typescript ] || tool=python3
  command -v $tool >/dev/null || { echo "SKIPPED: $language: there is no $tool" >&2; continue; }
  status=0
  (set -e; $language) || status=$?
  case $status in
  0) echo "$language: built, installed and used" ;;
  2) echo "SKIPPED: $language: its registry cannot be reached" >&2 ;;
  *) echo "FAILED: $language" >&2 && exit 1 ;;
  esac
done
