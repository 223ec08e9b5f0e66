#!/bin/sh
# Runs Cuvette and every anchor on this machine in one go; writes results.json and results.md. See README.md.
exec python3 -B "$(dirname "$0")/compare.py" "$@"
