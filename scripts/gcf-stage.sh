#!/bin/sh
# Puts what deploys as the source of a Cloud Run function into a folder: the module without its tests and its programs, and
# all of the function's own folder at the root, where Google's buildpack looks for a package: its Go files, duly.yaml, and the
# programs and texts that they use.
set -eu
to=${1:?usage: gcf-stage.sh FOLDER [FUNCTION]}
case $to in /*) ;; *) to=$PWD/$to ;; esac
root=$(cd "$(dirname "$0")/.." && pwd)
from=$(cd "${2:-$root/examples/cloud-function}" && pwd)
if [ -e "$to" ] && [ ! -f "$to/.duly-stage" ]; then
  echo "$to exists and was not made by gcf-stage: remove it, or name another folder" >&2
  exit 1
fi
for name in go.mod go.sum core adapters handlers host internal steps; do
  if [ -e "$from/$name" ]; then
    echo "$from/$name would replace duly's: give it another name" >&2
    exit 1
  fi
done
rm -rf "$to"
mkdir -p "$to"
cd "$from"
cp -R . "$to/"
cd "$to"
find . -name '*_test.go' -type f -exec rm -f {} +
rm -rf .git testdata
: >.duly-stage
cd "$root"
cp go.mod go.sum LICENSE "$to/"
find core adapters handlers host steps internal/dulyfile internal/aws internal/contract internal/standardwebhooks -type f ! -name '*_test.go' ! -path '*/testdata/*' \
  ! -path 'core/storetest/*' ! -path 'adapters/adaptertest/*' | while IFS= read -r file; do
  mkdir -p "$to/$(dirname "$file")"
  cp "$file" "$to/$file"
done
chmod u+w "$to/go.mod" "$to/go.sum"
echo "$to"
