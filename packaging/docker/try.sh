#!/usr/bin/env bash
# Tries the container's entry point without a container: what it makes of the arguments that the
# official image of Redis takes. The program that it would start prints its arguments instead. And the
# health check: whom it asks, and what it makes of the answer.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/data"
printf '#!/bin/sh\necho russet "$@"\n' >"$work/bin/russet"
printf '#!/bin/sh\necho 1000\n' >"$work/bin/id"
chmod +x "$work/bin/russet" "$work/bin/id"
printf 'bind 10.0.0.1\n  Protected-Mode yes\n' >"$work/closed.conf"
printf '# bind 10.0.0.1\nmaxmemory 1gb\n' >"$work/open.conf"

failed=0
# becomes <what is started> <arguments...>
becomes() {
    local wanted=$1 started
    shift
    started=$(cd "$work/data" && PATH="$work/bin:$PATH" sh "$OLDPWD/entrypoint.sh" "$@")
    if [ "$started" != "$wanted" ]; then
        echo "FAILED: '$*' starts '$started', not '$wanted'"
        failed=1
    fi
}

readonly PLAIN='--set-proc-title no'
readonly OPEN="--bind * -::* --protected-mode no $PLAIN"
becomes "russet $OPEN"
becomes "russet $OPEN" russet
becomes "russet $OPEN" redis-server
becomes "russet --save 60 1 $OPEN" redis-server --save 60 1
becomes "russet --port 7000 $OPEN" --port 7000
becomes "russet --bind 10.0.0.1 --protected-mode no $PLAIN" --bind 10.0.0.1
becomes "russet $work/open.conf --port 7000 $OPEN" "$work/open.conf" --port 7000
becomes "russet $work/closed.conf $PLAIN" "$work/closed.conf"
becomes "russet --version" russet --version
becomes "russet --version" --version
becomes "russet check dump.rdb" russet check dump.rdb
becomes "hello" echo hello

# asks <address and port> <arguments of the server...>; `answer` is what it gets.
printf '#!/bin/sh\ncat >/dev/null\necho "$3 $4" >"%s/asked"\nprintf "%%b" "$(cat "%s/answer")"\n' \
    "$work" "$work" >"$work/bin/nc"
chmod +x "$work/bin/nc"
asks() {
    local wanted=$1
    shift
    printf '%s\0' russet "$@" >"$work/cmdline"
    rm -f "$work/asked"
    is_healthy=yes
    PATH="$work/bin:$PATH" sh health.sh "$work/cmdline" >/dev/null || is_healthy=no
    if [ "$(cat "$work/asked" 2>/dev/null)" != "$wanted" ]; then
        echo "FAILED: '$*' is asked at '$(cat "$work/asked" 2>/dev/null)', not '$wanted'"
        failed=1
    fi
}
# answers <answer> <healthy> <arguments of the server...>
answers() {
    local answer=$1 wanted=$2
    shift 2
    printf '%s' "$answer" >"$work/answer"
    asks "$(cat "$work/asked")" "$@"
    [ "$is_healthy" = "$wanted" ] || { echo "FAILED: '$answer' is healthy: $is_healthy"; failed=1; }
}
printf '# port 1\nPort 7001\nbind "10.0.0.1" -10.0.0.2\n' >"$work/ports.conf"
printf '+PONG\\r\\n' >"$work/answer"
asks "127.0.0.1 6379"
asks "127.0.0.1 6379" --bind '*' '-::*' --protected-mode no
asks "127.0.0.1 7000" --port 6000 --PORT 7000
asks "10.0.0.1 6379" --bind 10.0.0.1 10.0.0.2
asks "127.0.0.1 6379" --bind 10.0.0.1 127.0.0.1
asks "::1 6379" --bind '-::*'
asks "10.0.0.1 7001" "$work/ports.conf"
asks "127.0.0.1 7002" "$work/ports.conf" --port 7002 --bind 0.0.0.0
asks "" --port 0 --unixsocket /data/russet.sock
[ "$is_healthy" = yes ] || { echo "FAILED: a server with a Unix socket only"; failed=1; }
asks "127.0.0.1 6379"
answers '+PONG\r\n' yes
answers '-NOAUTH Authentication required.\r\n' yes
answers '-LOADING it is loading\r\n' no
answers '' no
asks "127.0.0.1 7000" --port 0 --tls-port 7000
answers '\0025\0003\0003\0000\0002\0002\0062' yes --port 0 --tls-port 7000
answers '' no --port 0 --tls-port 7000

[ "$failed" -eq 0 ] && echo "the entry point works"
exit "$failed"
