#!/bin/sh
# Prints the path of a prometheus that the tests can start, with promtool beside
# it, and gets both first when this machine has none. Everything else goes to
# stderr.
#
# Looked for in this order: $DULY_TEST_PROMETHEUS, PATH, the cache folder. If it
# is in none of them, Debian's package is unpacked into the cache folder, or
# Homebrew's is installed. Nothing is started, and with apt-get nothing outside
# the cache folder is changed. Tests that need it are skipped without it.
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/duly/prometheus

say() { printf '%s\n' "$*" >&2; }

# usable PATH: does it run, and has it a promtool?
usable() {
  [ -x "$1" ] && "$1" --version >/dev/null 2>&1 && "${1%/*}/promtool" --version >/dev/null 2>&1
}

# found: prints the first usable one of PATH and the cache folder.
found() {
  candidate=$(command -v prometheus) && usable "$candidate" && printf '%s\n' "$candidate" && return 0
  usable "$cache/usr/bin/prometheus" && printf '%s\n' "$cache/usr/bin/prometheus"
}

# fetch DIR: downloads the package into DIR; when the machine's package lists
# are old or absent, reads fresh ones that are its own.
fetch() (
  mkdir -p "$1/lists/partial" "$1/cache"
  cd "$1"
  apt-get -qq download prometheus >&2 && return
  set -- -o Dir::State::Lists="$1/lists" -o Dir::Cache="$1/cache"
  apt-get -qq "$@" update >&2 && apt-get -qq "$@" download prometheus >&2
)

# apt_unpack: unpacks beside the cache folder and moves the whole into place, so
# that nobody sees half of it. The programs need the C library alone.
apt_unpack() {
  mkdir -p "${cache%/*}"
  new=$(mktemp -d "$cache.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  trap 'exit 1' INT TERM
  fetch "$new/apt" || return 1
  dpkg -x "$new"/apt/*.deb "$new/files" || return 1
  usable "$new/files/usr/bin/prometheus" || return 1
  rm -rf "$cache"
  mv "$new/files" "$cache"
}

get() {
  if command -v apt-get >/dev/null; then
    say "prometheus is not here: unpacking it into $cache"
    apt_unpack
  elif command -v brew >/dev/null; then
    say "prometheus is not here: installing it with Homebrew"
    brew install prometheus </dev/null >&2
  else
    return 1
  fi
}

if [ -n "${DULY_TEST_PROMETHEUS:-}" ]; then
  if usable "$DULY_TEST_PROMETHEUS"; then
    printf '%s\n' "$DULY_TEST_PROMETHEUS"
    exit 0
  fi
  say "DULY_TEST_PROMETHEUS=$DULY_TEST_PROMETHEUS is no prometheus with a promtool beside it"
  exit 1
fi

found && exit 0
(get) && found && exit 0
say "No prometheus could be had here: the tests that need it are skipped. Install it (Debian, Ubuntu: prometheus;"
say "macOS: brew install prometheus), or point DULY_TEST_PROMETHEUS at the binary, with promtool beside it."
exit 1
