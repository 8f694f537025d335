#!/usr/bin/env bash
# Installs Debian's nginx, which the differential test of the gateway compares with, when there is none yet.
#
#   test/gateway/install-nginx.sh
#
# Needs root, or sudo without a password. Does nothing when an nginx is found; RIGHTOFWAY_NGINX names
# another one. No server is started. Prints the path of the program.
set -euo pipefail

nginx="${RIGHTOFWAY_NGINX:-/usr/sbin/nginx}"

if [ ! -x "$nginx" ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
  fi
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends nginx-light >&2
fi

echo "$nginx"
