#!/bin/sh
# Healthy is a server that answers PING, be it that it wants a password first; not one that is still
# loading. It is asked where process 1 listens by its options or its file. Over TLS any
# answer will do, a refusal too: a PING would need a certificate.
#   health.sh [the file with the command line of the server]
# -f: the * of `bind *` is no pattern of files.
set -euf

args=$(tr '\0' '\n' <"${1:-/proc/1/cmdline}")
file=$(printf '%s\n' "$args" | sed -n 2p)

# given <directive>: its last value; options come after the file.
given() {
    {
        if [ -f "$file" ]; then tr -d "\"'" <"$file"; fi
        printf '%s\n' "$args" | awk '/^--/ { printf "\n%s", substr($0, 3); next } { printf " %s", $0 } END { print "" }'
    } | awk -v name="$1" 'tolower($1) == name { $1 = ""; value = substr($0, 2) } END { print value }'
}

port=$(given port)
port=${port:-6379}
is_tls=no
if [ "$port" = 0 ]; then
    port=$(given tls-port)
    is_tls=yes
fi
if [ "${port:-0}" = 0 ]; then
    echo "there is no port to ask: only the Unix socket"
    exit 0
fi

# Loopback, unless it listens on other addresses only.
address=
for bound in $(given bind); do
    bound=${bound#-}
    case "$bound" in
        "*" | 0.0.0.0 | localhost | 127.*) address=127.0.0.1; break ;;
        "::" | "::*") address=${address:-::1} ;;
        *) address=${address:-$bound} ;;
    esac
done
address=${address:-127.0.0.1}

reply=$(printf 'PING\r\n' | nc -w 3 "$address" "$port" | tr -d '\0' | head -n 1)
case "$is_tls:$reply" in
    no:+PONG* | no:-NOAUTH* | yes:?*) exit 0 ;;
    *) echo "$address port $port: ${reply:-no answer}"; exit 1 ;;
esac
