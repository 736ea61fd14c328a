#!/usr/bin/env bash
# Makes a stand-in for the image in which `sam local invoke` runs a python3.13 function, for machines that can reach
# Debian's and PyPI's packages but not the registry that holds the real one. It has CPython 3.13 and Lambda's own
# runtime interface client; SAM adds its runtime interface emulator. `make sam-local` calls this when it has to.
#
# Needs root, a running Docker engine, debootstrap, and about two minutes, once.
set -euo pipefail

image=${1:-public.ecr.aws/lambda/python:3.13-x86_64}
release=trixie # Debian 13, whose python3 is 3.13

missing() { echo "$1" >&2; exit 1; }
[ "$(id -u)" = 0 ] || missing "Making the image needs root: run this script with sudo."
command -v debootstrap >/dev/null || missing "Making the image needs debootstrap: apt-get install debootstrap"
docker info >/dev/null 2>&1 || missing "Making the image needs a running Docker engine."

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

debootstrap --variant=minbase --include=python3,ca-certificates "$release" "$root" >/dev/null
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*

mkdir -p "$root"/var/runtime "$root"/var/task "$root"/opt
"${UV:-$(dirname "$0")/../.local/envs/uv/bin/uv}" pip install --quiet --only-binary :all: \
	--python-version 3.13 --python-platform x86_64-manylinux_2_28 --target "$root/var/runtime" awslambdaric

# As Lambda does: the function first, then the layers, then the runtime.
cat >"$root/var/runtime/bootstrap" <<'SH'
#!/bin/sh
export PYTHONPATH=/var/task:/opt/python/lib/python3.13/site-packages:/opt/python:/var/runtime
cd /var/task
exec /usr/bin/python3 -m awslambdaric "$_HANDLER"
SH
chmod +x "$root/var/runtime/bootstrap"

tar -C "$root" -c . | docker import \
	--change 'ENV LAMBDA_TASK_ROOT=/var/task LAMBDA_RUNTIME_DIR=/var/runtime LANG=en_US.UTF-8' \
	--change 'WORKDIR /var/task' - "$image" >/dev/null
docker tag "$image" "${image%-x86_64}"
echo "made $image"
