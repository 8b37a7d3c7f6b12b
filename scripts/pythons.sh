#!/bin/sh
# Install both packages under each Python given, import them, and run the net of tests. A Python that is not here is named
# and left out.
# Usage: pythons.sh PYTHON...
set -eu
ran=
absent=
for python in "$@"; do
    if ! "$python" -c '' >/dev/null 2>&1; then
        absent="$absent $python"
        continue
    fi
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    folder=build/python-$version
    echo "Python $version"
    rm -rf "$folder"
    sh scripts/make-venv.sh "$python" "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
        '.[speech,web]' ./studies hypothesis pytest
    "$folder/bin/python" -P -c 'import fidm, fidm_studies; [getattr(fidm, name) for name in fidm.__all__]'
    "$folder/bin/python" -m pytest tests/net -q -p no:cacheprovider
    ran="$ran $version"
done
echo "Passed:${ran:- none}. Not found:${absent:- none}."
[ -n "$ran" ]
