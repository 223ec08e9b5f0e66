#!/bin/sh
# Runs the same operations with cuda.core, CuPy and Cuvette and compares what they say; see README.md.
exec python3 -B "$(dirname "$0")/check.py" "$@"
