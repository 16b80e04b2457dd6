# Debian's libraries for another processor in a folder, for a cross compiler and an emulator: sourced by
# tools/try_platform. This machine's apt keeps its architectures: the folder has lists of its own.
# The caller has a function `fail` and has sourced tools/debian_system.sh.
# SPDX-License-Identifier: MIT
# shellcheck shell=bash

# apt-get with its lists, its packages and its architecture below a folder.
foreign_apt() {
    local folder=$1 arch=$2
    shift 2
    apt-get -qq -o Dir::State="$folder/apt/state" -o Dir::State::status="$folder/apt/status" \
        -o Dir::Cache="$folder/apt/cache" -o Dir::Etc::sourcelist="$folder/apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User= "$@"
}

# make_libraries FOLDER ARCHITECTURE PACKAGE...: unpacks what is missing, in the release that this machine has.
make_libraries() {
    local folder=$1 arch=$2 log="$1/apt.log" release package link target
    shift 2
    [ "$(cat "$folder/.rondo-complete" 2>/dev/null)" != "$*" ] || return 0
    release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    rm -rf "$folder" && mkdir -p "$folder"/apt/{state/lists/partial,cache/archives/partial} "$folder/packages" ||
        fail "cannot make $folder"
    : >"$folder/apt/status"
    echo "deb $(debian_mirror) ${release:-stable} main" >"$folder/apt/sources.list"
    echo "unpacking libraries of Debian for $arch into $folder"
    { foreign_apt "$folder" "$arch" update && (cd "$folder/packages" && foreign_apt "$folder" "$arch" download "$@"); } \
        >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "apt-get failed; the whole log: $log"; }
    for package in "$folder"/packages/*.deb; do
        dpkg -x "$package" "$folder/root" || fail "cannot unpack $package"
    done
    # Links from the root of that system, as libz.so is one.
    find "$folder/root" -type l -lname '/*' -printf '%p\t%l\n' |
        while IFS=$'\t' read -r link target; do ln -sfnr "$folder/root$target" "$link"; done
    rm -rf "$folder/apt" "$folder/packages"
    echo "$*" >"$folder/.rondo-complete"
}
