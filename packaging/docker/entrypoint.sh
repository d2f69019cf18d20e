#!/bin/sh
# Starts the server as the official image of Redis does: options (`--port 7000`), a file
# (`/etc/russet.conf`), the program itself (`russet`, `redis-server` or `valkey-server` and its
# arguments), or any other command.
set -eu

case "${1:-}" in
    -* | *.conf | "") set -- russet "$@" ;;
    redis-server | valkey-server) shift; set -- russet "$@" ;;
esac

# has <directive>: whether an option or the file given says it.
has() {
    for word in "$@"; do
        [ "$word" != "--$directive" ] || return 0
    done
    case "${2:-}" in
        -* | "") return 1 ;;
        *) [ -f "$2" ] && grep -qiE "^[[:space:]]*$directive[[:space:]]" "$2" ;;
    esac
}

# The tools for files are no servers.
case "${2:-}" in
    check | convert | export | --check-config | --help | -h | --version | -v) is_server=no ;;
    *) is_server=yes ;;
esac

if [ "$1" = russet ] && [ "$is_server" = yes ]; then
    # As root: the data becomes the server's, who then runs without root's rights.
    if [ "$(id -u)" = 0 ]; then
        chown -R russet:russet .
        exec su-exec russet "$0" "$@"
    fi
    # A container is reached through its network, and closed by not publishing its port.
    directive=bind
    has "$@" || set -- "$@" --bind '*' '-::*'
    directive=protected-mode
    has "$@" || set -- "$@" --protected-mode no
    # health.sh reads there where the server listens, and a container has one server only.
    set -- "$@" --set-proc-title no
    # Files with data are for nobody else.
    [ "$(umask)" != 0022 ] || umask 0077
fi
exec "$@"
