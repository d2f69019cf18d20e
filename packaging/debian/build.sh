#!/usr/bin/env bash
# Builds the Debian package with dpkg-deb alone:
#   packaging/debian/build.sh [--binary FILE] [--version VERSION] [--output DIRECTORY]
# Without --binary it takes target/release/russet, and builds that if it is not there. Prints the
# path of the package.
set -euo pipefail
cd "$(dirname "$0")/../.."

binary= output=target/debian
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
while [ $# -gt 0 ]; do
    case "$1" in
        --binary) binary=$2; shift 2 ;;
        --version) version=$2; shift 2 ;;
        --output) output=$2; shift 2 ;;
        *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
if [ -z "$binary" ]; then
    binary=${CARGO_TARGET_DIR:-target}/release/russet
    [ -x "$binary" ] || cargo build --release --locked >&2
fi

mkdir -p "$output"
output=$(cd "$output" && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 0755 "$root"

put() { install -D -m "$1" "$2" "$root$3"; }
compressed() { install -d "$root$(dirname "$2")"; gzip -9n <"$1" >"$root$2"; chmod 0644 "$root$2"; }

put 0755 "$binary" /usr/bin/russet
# What a crash report needs stays in the build tree.
if command -v strip >/dev/null; then strip --strip-unneeded "$root/usr/bin/russet"; fi
put 0644 packaging/systemd/russet.service /lib/systemd/system/russet.service
put 0755 packaging/debian/russet.init /etc/init.d/russet
put 0644 packaging/debian/russet.logrotate /etc/logrotate.d/russet
install -d "$root/etc/russet"
cat packaging/debian/package.conf packaging/russet.conf >"$root/etc/russet/russet.conf"
chmod 0640 "$root/etc/russet/russet.conf"
compressed packaging/man/russet.1 /usr/share/man/man1/russet.1.gz
compressed packaging/man/russet.conf.5 /usr/share/man/man5/russet.conf.5.gz
put 0644 packaging/completions/russet.bash /usr/share/bash-completion/completions/russet
put 0644 packaging/completions/_russet /usr/share/zsh/vendor-completions/_russet
put 0644 packaging/completions/russet.fish /usr/share/fish/vendor_completions.d/russet.fish
put 0644 packaging/monitoring/alerts.yml /usr/share/russet/alerts.yml
put 0644 packaging/monitoring/grafana.json /usr/share/russet/grafana.json
put 0644 packaging/debian/copyright /usr/share/doc/russet/copyright
compressed CHANGELOG.md /usr/share/doc/russet/changelog.gz

# The C library that the binary was linked against, by the newest symbol that it asks for.
libc=$(grep -aoE 'GLIBC_[0-9]+(\.[0-9]+)+' "$binary" | sort -uV | tail -n 1 | cut -d_ -f2 || true)
depends="adduser, init-system-helpers"
[ -z "$libc" ] || depends="libc6 (>= $libc), libgcc-s1, $depends"

install -d "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<CONTROL
Package: russet
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: The Russet authors <russet@users.noreply.github.com>
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends
Suggests: redis-tools, logrotate
Section: database
Priority: optional
Homepage: https://github.com/russet-db/russet
Description: data-structure server that speaks the protocol of Redis
 Strings, lists, sets, hashes, sorted sets, streams, scripts and publish/subscribe
 over the protocol of Redis, on all cores. Clients of Redis and Valkey work unchanged,
 and so do their data files.
CONTROL
printf '%s\n' /etc/init.d/russet /etc/logrotate.d/russet /etc/russet/russet.conf >"$root/DEBIAN/conffiles"
for script in postinst prerm postrm; do
    install -m 0755 "packaging/debian/$script" "$root/DEBIAN/$script"
done
(cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z |
    xargs -0 md5sum >DEBIAN/md5sums)

package="$output/russet_${version}_$(dpkg --print-architecture).deb"
dpkg-deb --root-owner-group --build "$root" "$package" >&2
echo "$package"
