#!/bin/sh
# Puts what deploys as the source of a Cloud Run function into a folder: the module without its tests and its programs, and
# function.go at the root, where Google's buildpack looks for a package.
set -eu
cd "$(dirname "$0")/.."
to=${1:?usage: gcf-stage.sh FOLDER}
if [ -e "$to" ] && [ ! -f "$to/.duly-stage" ]; then
  echo "$to exists and was not made by gcf-stage: remove it, or name another folder" >&2
  exit 1
fi
rm -rf "$to"
mkdir -p "$to"
: >"$to/.duly-stage"
cp go.mod go.sum LICENSE examples/cloud-function/function.go "$to/"
for file in $(find core adapters handlers -type f ! -name '*_test.go' ! -path '*/testdata/*' \
  ! -path 'core/storetest/*' ! -path 'adapters/adaptertest/*'); do
  mkdir -p "$to/$(dirname "$file")"
  cp "$file" "$to/$file"
done
chmod u+w "$to/go.mod" "$to/go.sum"
echo "$to"
