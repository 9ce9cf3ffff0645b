#!/bin/sh
# Prints the path of a redis-server (6.2 or newer) that the tests can start, and
# gets one first when this machine has none. Everything else goes to stderr.
#
# Looked for in this order: $DULY_TEST_REDIS_SERVER, PATH, the cache folder. If
# it is in none of them, it is installed with apt-get (as root), unpacked into
# the cache folder with apt-get and dpkg (as anybody else), or installed with
# Homebrew. Nothing is started, and nothing outside the cache folder is changed
# without root.
set -eu

oldest_major=6
oldest_minor=2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/duly/redis

say() { printf '%s\n' "$*" >&2; }

# usable PATH: does it run, and is it new enough?
usable() {
  [ -x "$1" ] || return 1
  number=$("$1" --version 2>/dev/null | sed -n 's/.* v=\([0-9]*\)\.\([0-9]*\)\..*/\1 \2/p')
  [ -n "$number" ] || return 1
  major=${number% *}
  minor=${number#* }
  [ "$major" -gt "$oldest_major" ] ||
    { [ "$major" -eq "$oldest_major" ] && [ "$minor" -ge "$oldest_minor" ]; }
}

# found: prints the first usable server of PATH and the cache folder.
found() {
  for name in redis-server valkey-server; do
    candidate=$(command -v "$name") || continue
    usable "$candidate" && printf '%s\n' "$candidate" && return 0
  done
  usable "$cache/redis-server" && printf '%s\n' "$cache/redis-server"
}

# apt_install: as root. A policy-rc.d that answers 101 keeps the package from
# starting a service; one that is there already is left to decide.
apt_install() {
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    trap 'exit 1' INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  set -- apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=120 install redis-server
  DEBIAN_FRONTEND=noninteractive "$@" </dev/null >&2 ||
    { apt-get -qq update >&2 && DEBIAN_FRONTEND=noninteractive "$@" </dev/null >&2; }
}

# missing_libraries: the libraries redis-tools needs that dpkg does not have.
# libc is never among them: a second one on the library path would break all.
missing_libraries() {
  apt-cache "$@" depends --recurse --no-recommends --no-suggests --no-conflicts \
    --no-breaks --no-replaces --no-enhances redis-tools |
    grep -E '^(lib|lua-)' | grep -vE '^libc(6|-)' | sort -u |
    while read -r package; do
      dpkg -s "$package" 2>/dev/null | grep -q '^Status: .* installed$' || printf '%s\n' "$package"
    done
}

# apt_download OPTION...: fetches the packages into the working directory.
# Virtual packages have no file, so a library that cannot be had is not yet an
# error: the server that comes out is tried before it is used.
apt_download() {
  apt-get -qq "$@" download redis-server redis-tools >&2 || return 1
  for package in $(missing_libraries "$@"); do
    apt-get -qq "$@" download "$package" >/dev/null 2>&1 || :
  done
}

# fetch_packages DIR: fills DIR with packages; when the machine's package lists
# are old or absent, reads fresh ones that are its own.
fetch_packages() (
  mkdir -p "$1/debs" "$1/lists/partial" "$1/cache"
  cd "$1/debs"
  apt_download && return
  set -- -o Dir::State::Lists="$1/lists" -o Dir::Cache="$1/cache"
  apt-get -qq "$@" update >&2 && apt_download "$@"
)

# wrapper: the script that runs the unpacked server with its libraries.
wrapper() {
  cat <<'EOF'
#!/bin/sh
# Runs the unpacked redis-server with the libraries unpacked beside it.
here=$(cd "$(dirname "$0")" && pwd)
libs=${LD_LIBRARY_PATH:-}
for dir in "$here"/files/usr/lib/*-linux-* "$here"/files/lib/*-linux-*; do
  [ -d "$dir" ] && libs=$dir${libs:+:$libs}
done
[ -z "$libs" ] || export LD_LIBRARY_PATH="$libs"
exec "$here/files/usr/bin/redis-server" "$@"
EOF
}

# apt_unpack: as an ordinary user. Unpacks beside the cache folder and moves the
# whole into place, so that nobody sees half of it.
apt_unpack() {
  mkdir -p "${cache%/*}"
  new=$(mktemp -d "$cache.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  trap 'exit 1' INT TERM
  fetch_packages "$new/apt" || return 1
  for deb in "$new"/apt/debs/*.deb; do
    dpkg -x "$deb" "$new/files" || return 1
  done
  rm -rf "$new/apt"
  wrapper >"$new/redis-server"
  chmod 755 "$new" "$new/redis-server"
  usable "$new/redis-server" || return 1
  rm -rf "$cache"
  mv "$new" "$cache"
}

get() {
  if command -v apt-get >/dev/null; then
    if [ "$(id -u)" -eq 0 ]; then
      say "redis-server is not here: installing it with apt-get"
      apt_install
    else
      say "redis-server is not here: unpacking it into $cache"
      apt_unpack
    fi
  elif command -v brew >/dev/null; then
    say "redis-server is not here: installing it with Homebrew"
    brew install redis </dev/null >&2
  else
    return 1
  fi
}

if [ -n "${DULY_TEST_REDIS_SERVER:-}" ]; then
  if usable "$DULY_TEST_REDIS_SERVER"; then
    printf '%s\n' "$DULY_TEST_REDIS_SERVER"
    exit 0
  fi
  say "DULY_TEST_REDIS_SERVER=$DULY_TEST_REDIS_SERVER is no redis-server $oldest_major.$oldest_minor or newer"
  exit 1
fi

found && exit 0
(get) && found && exit 0
say "The tests need redis-server $oldest_major.$oldest_minor or newer (or valkey-server), and none could be had here."
say "Install it (Debian, Ubuntu: redis-server; Fedora: redis or valkey; Alpine, Arch: redis; macOS: brew install redis),"
say "or point DULY_TEST_REDIS_SERVER at the binary."
exit 1
