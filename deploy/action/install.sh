#!/usr/bin/env bash
# Installs a release of duly for the rest of a job: its archive is compared with the checksums of the release, and unpacked into a folder of the
# runner's that is put in front of the path. DULY_RELEASES is where releases are, for tests and mirrors.
set -euo pipefail

releases=${DULY_RELEASES:-https://github.com/seed-6f6f2c11/duly/releases}
version=${DULY_VERSION#v}

fail() {
  echo "::error::duly: $1" >&2
  exit 1
}

case "$(uname -s)" in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) fail "there is no release for $(uname -s): use a runner with Linux or macOS" ;;
esac
case "$(uname -m)" in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) fail "there is no release for $(uname -m): use a runner of x86-64 or ARM64" ;;
esac
if [ -z "$version" ]; then
  latest=$(curl -fsSL --retry 3 -o /dev/null -w '%{url_effective}' "$releases/latest") || fail "the last release is not known: name one as version"
  version=${latest##*/v}
fi
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "\"$version\" is no version: name one such as 1.2.3"

folder=${RUNNER_TEMP:-$(mktemp -d)}/duly-$version
archive=duly_${version}_${os}_${arch}.tar.gz
mkdir -p "$folder"
for file in "$archive" checksums.txt; do
  curl -fsSL --retry 3 -o "$folder/$file" "$releases/download/v$version/$file" || fail "version $version has no $file"
done
want=$(awk -v file="$archive" '$2 == file { print $1 }' "$folder/checksums.txt")
if command -v sha256sum >/dev/null; then
  got=$(sha256sum "$folder/$archive" | cut -d' ' -f1)
else
  got=$(shasum -a 256 "$folder/$archive" | cut -d' ' -f1)
fi
[ -n "$want" ] && [ "$got" = "$want" ] || fail "$archive is not what the release has: its checksum differs"
tar -xzf "$folder/$archive" -C "$folder" duly
[ -z "${GITHUB_PATH:-}" ] || echo "$folder" >>"$GITHUB_PATH"
"$folder/duly" version
