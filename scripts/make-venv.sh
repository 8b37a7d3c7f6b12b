#!/bin/sh
# Make a virtual environment; on Debian and Ubuntu install the venv module first where that is allowed.
# Usage: make-venv.sh PYTHON FOLDER
set -eu
python=$1
folder=$2

if ! command -v "$python" >/dev/null 2>&1; then
    echo "There is no $python. Install Python 3.11 or newer, or run: make PYTHON=/path/to/python3" >&2
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "fidm needs Python 3.11 or newer; $python is $("$python" -V). Run: make PYTHON=/path/to/python3.11" >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
        apt-get update -qq && apt-get install -y -qq python3-venv
    else
        echo "Python's venv module is missing. Install it, for example with: sudo apt-get install python3-venv" >&2
        exit 1
    fi
fi
[ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
