#!/usr/bin/env bash
# Tries the Debian package: installs, uses, stops, upgrades, removes and purges it, and looks each
# time at what is left. In a copy of this system that is thrown away (an overlay, with a network and
# processes of its own), so that nothing here changes. Needs root and redis-cli.
#   packaging/debian/try.sh [--binary FILE]
set -euo pipefail
[ "${1:-}" = --inside ] || cd "$(dirname "$0")/../.."

readonly DATA=/var/lib/russet
readonly CONFIG=/etc/russet/russet.conf

fail() { echo "FAILED: $*" >&2; exit 1; }

# holds <what> <command...>
holds() {
    local what=$1
    shift
    "$@" >/tmp/said 2>&1 || { cat /tmp/said; fail "$what"; }
    echo "ok: $what"
}

fails() {
    local what=$1
    shift
    if "$@" >/dev/null 2>&1; then fail "$what"; fi
    echo "ok: $what"
}

is_equal() { [ "$1" = "$2" ] || { echo "'$1' is not '$2'"; return 1; }; }

cli() { timeout 10 redis-cli "$@"; }

answers() {
    for _ in $(seq 100); do
        [ "$(cli ping 2>/dev/null)" = PONG ] && return 0
        sleep 0.1
    done
    cat /var/log/russet/russet.log
    return 1
}

pid() { cat /run/russet/russet.pid; }

owner() { stat -c '%U:%G %a' "$1"; }

# Everything below runs inside the copy.
inside() {
    local first=$1 second=$2 before
    # A container's image may forbid that installed services start.
    rm -f /usr/sbin/policy-rc.d
    # And it has no runlevel, as a machine with init has one.
    rm -f /sbin/runlevel
    printf '#!/bin/sh\necho N 2\n' >/sbin/runlevel
    chmod +x /sbin/runlevel
    ip link set lo up
    install_and_use "$first"
    before=$(pid)
    upgrade "$second" "$before"
    stop_and_start
    remove "$second"
    echo "the package installs, starts, stops, upgrades, and leaves the data"
}

install_and_use() {
    holds "it installs" dpkg -i "$1"
    holds "it has started" answers
    is_equal "$(stat -c %U "/proc/$(pid)")" russet || fail "it runs as another user"
    holds "the data directory is the server's" is_equal "$(owner $DATA)" "russet:russet 750"
    holds "others can't read the configuration" is_equal "$(owner $CONFIG)" "russet:russet 640"
    holds "the configuration has no line that is refused" russet --check-config "$CONFIG"
    holds "it works in its directory" is_equal "$(cli config get dir | tail -n 1)" "$DATA"
    holds "a key is written" is_equal "$(cli set kept 1)" OK
    holds "CONFIG REWRITE writes" is_equal "$(cli config set maxclients 777)" OK
    holds "CONFIG REWRITE writes" is_equal "$(cli config rewrite)" OK
    holds "the log is written" test -s /var/log/russet/russet.log
    if command -v systemd-analyze >/dev/null; then
        holds "systemd accepts the unit" systemd-analyze verify /lib/systemd/system/russet.service
        holds "the unit is hardened" systemd-analyze security --offline=true --threshold=20 \
            /lib/systemd/system/russet.service
    fi
    if command -v man >/dev/null; then
        holds "the manual is readable" man --warnings=all -l /usr/share/man/man1/russet.1.gz
    fi
}

upgrade() {
    # The administrator's lines are kept: by an option of dpkg, as with unattended upgrades.
    holds "it upgrades" dpkg --force-confold -i "$1"
    holds "it runs again" answers
    [ "$(pid)" != "$2" ] || fail "the old process still runs"
    holds "the data is there" is_equal "$(cli get kept)" 1
    holds "the configuration is kept" is_equal "$(cli config get maxclients | tail -n 1)" 777
}

stop_and_start() {
    holds "it stops" service russet stop
    fails "nothing answers" cli ping
    holds "a second stop is no error" service russet stop
    fails "its status says so" service russet status
    holds "it starts" service russet start
    holds "it answers" answers
    holds "its status says so" service russet status
    holds "a second start is no error" service russet start
    holds "the data is there" is_equal "$(cli get kept)" 1
}

remove() {
    cli set last 2 >/dev/null
    holds "it is removed" dpkg --remove russet
    fails "nothing answers" cli ping
    fails "the program is gone" test -e /usr/bin/russet
    holds "the data is left" test -s "$DATA/dump.rdb"
    holds "the configuration is left" test -s "$CONFIG"
    holds "it installs again" dpkg -i "$1"
    holds "it has started" answers
    holds "what was saved at the end is there" is_equal "$(cli get last)" 2
    holds "it is purged" dpkg --purge russet
    fails "the configuration is gone" test -e /etc/russet
    fails "the logs are gone" test -e /var/log/russet
    holds "the data is left" test -s "$DATA/dump.rdb"
}

if [ "${1:-}" = --inside ]; then
    inside "$2" "$3"
    exit 0
fi

[ "$(id -u)" -eq 0 ] || fail "this needs root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
first=$(packaging/debian/build.sh --output "$work" "$@")
second=$(packaging/debian/build.sh --output "$work" "$@" --version 99.0.0)
# An overlay can't lie on another one, so what changes is kept in memory.
unshare --mount --net bash -euc '
    copy=$1/copy
    mkdir -p "$copy" "$1/layers"
    mount -t tmpfs none "$1/layers"
    mkdir "$1/layers/upper" "$1/layers/work"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$1/layers/upper,workdir=$1/layers/work" "$copy"
    mount --rbind /dev "$copy/dev"
    mount -t tmpfs none "$copy/run"
    mount -t tmpfs none "$copy/tmp"
    cp "$2" "$3" "$4" "$copy/tmp/"
    exec unshare --pid --fork --mount-proc --root="$copy" --wd=/ /bin/bash "/tmp/${4##*/}" --inside \
        "/tmp/${2##*/}" "/tmp/${3##*/}"
' _ "$work" "$first" "$second" "packaging/debian/try.sh"
