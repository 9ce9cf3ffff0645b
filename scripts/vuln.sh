#!/bin/sh
# vuln.sh PACKAGE@VERSION FOLDER: builds govulncheck into FOLDER, and asks it
# about this module. Fails if it finds a vulnerability in code that duly calls.
# Where it cannot be built, or does not reach its database, it says so and
# passes: a machine without that network can still check everything else.
set -eu

name=$1
folder=$2
program=$folder/govulncheck-${name##*@}

skip() {
  printf 'SKIPPED: known vulnerabilities were not looked for: %s\n' "$1" >&2
  exit 0
}

# limited COMMAND...: at most 75 seconds, where the system can count them: this is one check of several.
limited() {
  if command -v timeout >/dev/null; then timeout 75 "$@"; else "$@"; fi
}

if [ ! -x "$program" ]; then
  mkdir -p "$folder"
  build=$(mktemp -d)
  trap 'rm -rf "$build"' EXIT
  GOBIN=$build limited go install "$name" >&2 || skip "$name could not be built (see above)"
  mv "$build/govulncheck" "$program"
fi

status=0
limited "$program" ./... >&2 || status=$?
case $status in
  0) ;;
  3) exit 1 ;; # something was found, and printed
  *) skip "govulncheck ended with $status (see above)" ;;
esac
