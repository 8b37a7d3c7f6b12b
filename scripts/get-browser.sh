#!/bin/sh
# Make sure that there is a Chromium for the tests of the web pages, and a font with Chinese characters.
# Where they are missing they come from Debian or Ubuntu; elsewhere it says what to install.
set -eu

has_browser() {
    [ -n "${FIDM_CHROMIUM:-}" ] && return 0
    for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do
        command -v "$name" >/dev/null 2>&1 && return 0
    done
    return 1
}

has_font() {
    command -v fc-list >/dev/null 2>&1 && [ -n "$(fc-list :lang=zh-hk family)$(fc-list :lang=zh family)" ]
}

wanted=""
has_browser || wanted="chromium"
has_font || wanted="$wanted fonts-wqy-microhei fontconfig"
[ -n "$wanted" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "The tests need a Chromium and a font with Chinese characters, and this machine lacks: $wanted." >&2
    echo "Install them (or set FIDM_CHROMIUM to the browser's path), and run make test again." >&2
    exit 1
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "Ask whoever may to run: apt-get install $wanted. Then run make test again." >&2
        exit 1
    fi
    as_root="sudo"
fi
echo "Installing from the system's packages:" $wanted
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
$as_root apt-get install --yes --quiet --quiet --no-install-recommends $wanted >/dev/null 2>&1 || {
    $as_root apt-get update --quiet --quiet >/dev/null
    $as_root apt-get install --yes --quiet --quiet --no-install-recommends $wanted >/dev/null
}
