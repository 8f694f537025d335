#!/usr/bin/env bash
# Installs Debian's Chromium, which the browser tests drive, when no Chromium is there yet.
#
#   inspector/install-browser.sh
#
# Needs root, or sudo without a password. Does nothing when a browser is found; RIGHTOFWAY_CHROMIUM
# names another one. Prints the path of the browser.
set -euo pipefail

browser="${RIGHTOFWAY_CHROMIUM:-/usr/bin/chromium}"

if [ ! -x "$browser" ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
  fi
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >&2
fi

echo "$browser"
