# Debian's libraries in a folder, for a cross compiler and an emulator or for another C library: sourced by
# tools/try_platform. This machine's apt keeps its architectures and lists: the folder has its own.
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

is_complete() { [ "$(cat "$1/.rondo-complete" 2>/dev/null)" = "$2" ]; }

# fetch_packages FOLDER ARCHITECTURE deb|deb-src download|source PACKAGE...: into FOLDER/packages, of the release that
# this machine has.
fetch_packages() {
    local folder=$1 arch=$2 kind=$3 verb=$4 log="$1/apt.log" release
    shift 4
    release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    rm -rf "$folder" && mkdir -p "$folder"/apt/{state/lists/partial,cache/archives/partial} "$folder/packages" ||
        fail "cannot make $folder"
    : >"$folder/apt/status"
    echo "$kind $(debian_mirror) ${release:-stable} main" >"$folder/apt/sources.list"
    { foreign_apt "$folder" "$arch" update && (cd "$folder/packages" && foreign_apt "$folder" "$arch" "$verb" "$@"); } \
        >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "apt-get failed; the whole log: $log"; }
}

# make_libraries FOLDER ARCHITECTURE PACKAGE...: unpacks what is missing below FOLDER/root.
make_libraries() {
    local folder=$1 arch=$2 package link target
    shift 2
    ! is_complete "$folder" "$*" || return 0
    echo "unpacking libraries of Debian for $arch into $folder"
    fetch_packages "$folder" "$arch" deb download "$@"
    for package in "$folder"/packages/*.deb; do
        dpkg -x "$package" "$folder/root" || fail "cannot unpack $package"
    done
    # Links from the root of that system, as libz.so is one.
    find "$folder/root" -type l -lname '/*' -printf '%p\t%l\n' |
        while IFS=$'\t' read -r link target; do ln -sfnr "$folder/root$target" "$link"; done
    rm -rf "$folder/apt" "$folder/packages"
    echo "$*" >"$folder/.rondo-complete"
}

# Headers of the kernel beside those of another C library: link_kernel_headers FOLDER.
link_kernel_headers() {
    mkdir -p "$1" && ln -sfn /usr/include/linux /usr/include/asm-generic "$1" &&
        ln -sfn "/usr/include/$(gcc -print-multiarch)/asm" "$1/asm" || fail "cannot make $1"
}

# In the folder of the sources. zlib and OpenSSL have their own way of being configured; libnghttp2 is its files.
build_for_musl() {
    local root=$1 kernel=$2
    mkdir -p "$root/include/nghttp2" "$root/lib" || return
    (cd zlib-* && CC=musl-gcc ./configure --static && make -j2 libz.a && cp zlib.h zconf.h "$root/include" &&
        cp libz.a "$root/lib") &&
        (cd nghttp2-*/lib && version=$(pwd | sed 's/.*nghttp2-\([0-9.]*\).*/\1/') && IFS=. read -r a b c <<<"$version" &&
            sed "s/@PACKAGE_VERSION@/$version/; s/@PACKAGE_VERSION_NUM@/$(printf '0x%02x%02x%02x' "$a" "$b" "$c")/" \
                includes/nghttp2/nghttp2ver.h.in >includes/nghttp2/nghttp2ver.h &&
            printf '%s\0' ./*.c | xargs -0 -P 2 -n 8 musl-gcc -O2 -Iincludes -DHAVE_ARPA_INET_H -DHAVE_NETINET_IN_H -c &&
            ar rcs "$root/lib/libnghttp2.a" ./*.o && cp includes/nghttp2/*.h "$root/include/nghttp2") &&
        (cd openssl-* && CC="musl-gcc -idirafter $kernel" ./Configure "linux-$(uname -m)" -O1 no-shared no-tests no-engine \
            no-dso no-legacy && make -s -j2 build_generated && make -s -j2 libssl.a libcrypto.a &&
            cp -r include/openssl "$root/include" && cp libssl.a libcrypto.a "$root/lib")
}

# make_musl FOLDER: Debian has no libraries for musl, so its sources are built with it. OpenSSL takes some minutes.
make_musl() {
    local folder=$1 log="$1/build.log" sources="zlib nghttp2 openssl"
    ! is_complete "$folder" "$sources" || return 0
    echo "building $sources with musl in $folder"
    # shellcheck disable=SC2086
    fetch_packages "$folder" "$(dpkg --print-architecture)" deb-src source $sources
    link_kernel_headers "$folder/kernel"
    (cd "$folder/packages" && build_for_musl "$folder/root" "$folder/kernel") >"$log" 2>&1 ||
        { tail -n 20 "$log" >&2; fail "the libraries do not compile; the whole log: $log"; }
    rm -rf "$folder/apt" "$folder/packages"
    echo "$sources" >"$folder/.rondo-complete"
}
