# Systems of Debian in folders, for what needs another Debian than this machine's: sourced by tools/try_debian13 and
# tools/in_ruby. The caller sets `root` (the tree) and `system` (the folder) and has a function `fail`.
# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154

check_system_tools() {
    [ "$(id -u)" -eq 0 ] || fail "needs root for the chroot"
    command -v mmdebstrap >/dev/null || fail "install mmdebstrap first"
}

# The mirror that this machine's apt uses, in either form of its sources.
debian_mirror() {
    local found
    found=$(sed -nE 's/^(URIs:|deb) +(\[[^]]*\] +)?(https?:[^ ]*\/debian\/?)( .*|$)/\3/p' \
        /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
    echo "${found:-http://deb.debian.org/debian}"
}

# What this machine's apt is told of mirrors that stand still.
valid_until() { apt-config dump --format '%f "%v";%n' Acquire::Check-Valid-Until; }

# install_system PACKAGE,... SUITE...: the first suite is the system's, a package comes from a later one only if the
# first has none (Debian gives experimental that rank by itself). It keeps nothing after a crash, so dpkg need not
# wait for the disk.
install_system() {
    local packages=$1 suite mirror
    shift
    mirror=$(debian_mirror)
    for suite in "$@"; do echo "deb $mirror $suite main"; done >"$system.sources"
    echo "installing Debian ($*) into $system"
    mmdebstrap --mode=root --variant=apt --format=directory --include="$packages" --aptopt="$(valid_until)" \
        --dpkgopt=force-unsafe-io --skip=cleanup/apt/lists "$1" "$system" - <"$system.sources" >"$system.log" 2>&1 ||
        { tail -n 20 "$system.log" >&2; rm -rf "$system"; fail "mmdebstrap failed; the whole log: $system.log"; }
    tr , '\n' <<<"$packages" >"$system/.rondo-complete"
}

# What is missing of a system that is there, by an earlier version of its script or for another one.
add_packages() {
    local missing log
    missing=$(tr , '\n' <<<"$1" | grep -vxFf <(tr , '\n' <"$system/.rondo-complete") | tr '\n' ' ')
    [ -n "$missing" ] || return 0
    echo "adding to $system: $missing"
    log=$(inside sh -c "apt-get update && apt-get install -y --no-install-recommends $missing" 2>&1) ||
        { tail -n 20 <<<"$log" >&2; fail "apt-get failed"; }
    tr , '\n' <<<"$1" >>"$system/.rondo-complete"
}

# make_system PACKAGE,... SUITE...: installs what is missing.
make_system() {
    mkdir -p "$(dirname "$system")" || fail "cannot make $system"
    [ -e "$system/.rondo-complete" ] || { rm -rf "$system" && install_system "$@"; }
    name_hosts
    start_nothing
    add_packages "$1"
}

# A new system has no /etc/hosts. Thruster passes requests on to localhost by that name.
name_hosts() {
    cp /etc/resolv.conf "$system/etc/" || fail "the system has no names of hosts"
    grep -qs localhost "$system/etc/hosts" || printf '127.0.0.1 localhost\n::1 localhost\n' >>"$system/etc/hosts"
}

# No server begins when its package is installed.
start_nothing() {
    printf '#!/bin/sh\nexit 101\n' >"$system/usr/sbin/policy-rc.d" && chmod +x "$system/usr/sbin/policy-rc.d"
}

# With its own mounts and processes, which go when the command ends. The network is this machine's. The shell stays as
# the first process and reaps orphans, so that the command is an ordinary one.
inside() {
    unshare --mount --pid --fork --kill-child bash -c 'mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" &&
        mount --rbind /dev "$0/dev" || exit; chroot "$0" "$@"; exit $?' "$system" \
        env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# Who this machine trusts, to install gems: a file inside.
trust_inside() {
    cp -L /etc/ssl/certs/ca-certificates.crt "$system/etc/rondo-trusted.crt" || fail "this machine trusts nobody"
    echo /etc/rondo-trusted.crt
}

# The tree's files without what git ignores, as they are now, into a folder of the system.
copy_files() {
    (cd "$root" && git ls-files -z --cached --others --exclude-standard | tar -c --null --files-from=- --ignore-failed-read) |
        tar -x -C "$system/$1" || fail "cannot copy the sources"
}
