#!/bin/sh
# Installs the Debian packages the tests use, where this user may. Elsewhere the tests that need them say so and are skipped.
set -eu
list="$(dirname "$0")/debian-packages.txt"
[ -f "$list" ] || exit 0
command -v apt-get >/dev/null 2>&1 || exit 0
missing=""
for package in $(grep -v '^#' "$list"); do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ -n "${NO_APT:-}" ]; then
  echo "NO_APT is set: nothing is installed. The tests that need these Debian packages are skipped:$missing"
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "These Debian packages are missing, and only root can install them; their tests are skipped:$missing"
  exit 0
fi
echo "Installing Debian packages for the tests, system-wide (make test NO_APT=1 leaves them out):$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends $missing >/dev/null
