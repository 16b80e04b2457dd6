# frozen_string_literal: true

# Makes the Makefile of the extension: the core's folders and the binding in one shared object.
# The core alone, without Ruby, is built by core.mk. `RONDO_SANITIZE=address,undefined` builds with
# sanitizers, `RONDO_DEBUG=1` without optimisation and with assertions.
# SPDX-License-Identifier: MIT

abort "Rondo needs a system with 64 bits" if [0].pack("j").bytesize < 8

require "mkmf"

# Another compiler than Ruby's own, as in `CC=clang gem install rondo`: Ruby's list of warnings is its own
# compiler's, and another one warns of every name it does not know.
if ENV["CC"]
  RbConfig::MAKEFILE_CONFIG["CC"] = ENV["CC"]
  $warnflags = "-Wall"
end

FOLDERS = %w[base system loop transport tls listen pubsub cluster http request files endpoint messaging protocol
             http2 server control load ruby fibers binding rack app threads].freeze
WITH_TLS = with_config("tls", true)
WITH_HTTP2 = with_config("http2", true)

folders = FOLDERS.dup
folders.delete("tls") unless WITH_TLS
folders.delete("http2") unless WITH_HTTP2
sources = folders.flat_map { |folder| Dir[File.join(__dir__, folder, "*.c")] }.sort
twice = sources.group_by { |path| File.basename(path) }.select { |_, paths| paths.size > 1 }
abort "object files lie flat, so names must differ: #{twice.keys.join(", ")}" unless twice.empty?

# Objects land in one folder; make finds the sources by VPATH.
$srcs = sources.map { |path| File.basename(path) }
$VPATH.concat(folders.map { |folder| "$(srcdir)/#{folder}" })

sanitizers = ENV.fetch("RONDO_SANITIZE", "")
debug = ENV["RONDO_DEBUG"] || !sanitizers.empty?

# The sockets' interface reads one struct as another (sockaddr), which the optimiser may otherwise
# take for two that have nothing to do with each other.
flags = ["-std=c11", "-D_GNU_SOURCE", "-fvisibility=hidden", "-fno-strict-aliasing"]
flags += debug ? ["-O1", "-g", "-fno-omit-frame-pointer"] : ["-O3", "-DNDEBUG"]
flags << "-fsanitize=#{sanitizers}" << "-fno-sanitize-recover=all" unless sanitizers.empty?

# Across files the linker inlines what the core's small functions cost to call, and -fno-plt spares
# the jump on the way into Ruby: 4 % fewer instructions a request. Where a compiler has neither, it
# goes without.
linked = []
unless debug
  flags << "-fno-plt" if try_cflags("-fno-plt")
  lto = %w[-flto=auto -flto].find { |flag| try_link("int main(void) { return 0; }", "#{flag} -O3") }
  linked << lto << "-O3" if lto
end

append_cppflags("-I$(srcdir)")
# What waits for sockets: epoll of Linux, else kqueue of macOS and the BSDs, else poll(2).
if !have_func("epoll_create1", "sys/epoll.h") && have_func("kqueue", ["sys/types.h", "sys/event.h"])
  append_cppflags("-DRD_WITH_KQUEUE")
end
# After Ruby's own flags, so that these win.
$CFLAGS = [$CFLAGS, *flags, *linked].join(" ")
$LDFLAGS = [$LDFLAGS, *linked].join(" ")
$CFLAGS << " -Wno-declaration-after-statement"
$LDFLAGS << " -fsanitize=#{sanitizers}" unless sanitizers.empty?
have_library("pthread")

# Said at once for all that is missing, with the command that installs it on this system.
PACKAGES = { "apt-get install" => { zlib: "zlib1g-dev", tls: "libssl-dev", http2: "libnghttp2-dev" },
             "dnf install" => { zlib: "zlib-devel", tls: "openssl-devel", http2: "libnghttp2-devel" },
             "zypper install" => { zlib: "zlib-devel", tls: "libopenssl-devel", http2: "libnghttp2-devel" },
             "apk add" => { zlib: "zlib-dev", tls: "openssl-dev", http2: "nghttp2-dev" },
             "pacman -S" => { zlib: "zlib", tls: "openssl", http2: "libnghttp2" } }.freeze
missing = {}
unless have_header("zlib.h") && have_library("z", "inflate")
  missing[:zlib] = "zlib is missing: install zlib1g-dev, zlib-devel or how your system calls its headers"
end
# SSL_CTX_use_cert_and_key is from 1.1.1; 3.0 is what is tested, and what still gets repairs.
if !WITH_TLS
  append_cppflags("-DRD_WITHOUT_TLS")
elsif !(have_header("openssl/ssl.h") && have_library("crypto", "EVP_PKEY_get_base_id") &&
        have_library("ssl", "SSL_CTX_new"))
  missing[:tls] = "OpenSSL 3.0 or newer is missing: install libssl-dev, openssl-devel or how your system calls its " \
                  "headers, or build without TLS: gem install rondo -- --without-tls"
end
# The function came with the repair of CVE-2024-28182: with 1.61, or with what a distribution keeps in repair.
if !WITH_HTTP2
  append_cppflags("-DRD_WITHOUT_HTTP2")
elsif !(have_header("nghttp2/nghttp2.h") && have_library("nghttp2", "nghttp2_option_set_max_continuations"))
  missing[:http2] = "libnghttp2 1.61 or newer is missing: install libnghttp2-dev, libnghttp2-devel or how your " \
                    "system calls its headers, or build without HTTP/2: gem install rondo -- --without-http2"
end
unless missing.empty?
  command, names = PACKAGES.find { |words, _| find_executable0(words[/\A\S+/]) }
  together = "Here this installs what is missing: #{command} #{names.values_at(*missing.keys).join(" ")}" if command
  abort [*missing.values, *together].join("\n")
end

# Of newer versions of Ruby: the descriptor of any IO (3.3), the limit of time of an IO (3.2).
have_func("rb_io_descriptor", "ruby/io.h")
have_func("rb_io_timeout", "ruby/io.h")
# Jobs that any thread may trigger (3.3); before, it registers them.
have_func("rb_postponed_job_preregister", "ruby/debug.h")
# Storage of fibers (3.2).
have_func("rb_fiber_new_storage", "ruby.h")

create_makefile("rondo/rondo")

# mkmf follows no includes: a changed header rebuilds the objects.
headers = Dir[File.join(__dir__, "**", "*.{h,def}")].map { |path| path.delete_prefix("#{__dir__}/") }
File.open("Makefile", "a") do |makefile|
  makefile.puts "\n$(OBJS): #{headers.sort.map { |path| "$(srcdir)/#{path}" }.join(" ")}"
  # Ruby raises by jumping over the binding's frames, in a way ASan does not see: what it believes
  # of their variables is wrong afterwards. Nothing jumps over the functions of the core.
  makefile.puts "$(filter rb_%,$(OBJS)): CFLAGS += --param asan-stack=0" if sanitizers.include?("address")
end
