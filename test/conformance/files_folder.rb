# encoding: ascii-8bit
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# The folders for the rules of files_rules/: each file with its bytes and its time. So length, Last-Modified and ETag of
# an answer are known before a server has seen the folder.

require "fileutils"
require "socket"
require "time"
require "zlib"

module FilesFolder
  # @!attribute modified [Integer] nanoseconds since 1970
  # @!attribute type [String] what Content-Type must be
  Entry = Struct.new(:content, :modified, :type) do
    # @param suffix [String, nil] suffix of the encoding, without its dot
    def etag(suffix = nil)
      format(suffix ? '"%x-%x-%s"' : '"%x-%x"', content.bytesize, modified, suffix)
    end

    # @param late [Integer] seconds
    def last_modified(late = 0)
      Time.at((modified / 1_000_000_000) + late).httpdate
    end
  end

  BORN = 1_700_000_000_123_456_789 # Tue, 14 Nov 2023 22:13:20 GMT
  SECOND = 1_000_000_000
  TEXT = "text/plain; charset=utf-8"
  HTML = "text/html; charset=utf-8"
  SCRIPT = "text/javascript; charset=utf-8"
  STYLE = "text/css; charset=utf-8"
  BYTES = "application/octet-stream"
  GZIP = "application/gzip"

  # Bytes that differ at every position and in every file.
  def self.bytes(name, size)
    seed = Zlib.crc32(name)
    lines = (0...(size.fdiv(16).ceil)).map { |number| format("%06x:%08x\n", seed & 0xffffff, number) }
    lines.join.byteslice(0, size)
  end

  @public = {}
  @pages = {}
  class << self
    # @return [Hash{String => Entry}] of the first folder, by the name below it
    attr_reader :public

    # @return [Hash{String => Entry}] of the second folder, which has pages for errors
    attr_reader :pages

    private

    def file(name, size = 40, modified: BORN, type: TEXT, to: @public)
      to[name] = Entry.new(bytes(name, size).freeze, modified, type).freeze
    end

    # The encoded siblings of a file. Each one is younger by its own number of seconds.
    def siblings(name, late = { "br" => 1, "gz" => 2, "zst" => 3 })
      late.each do |suffix, seconds|
        type = { "gz" => GZIP, "zst" => "application/zstd" }.fetch(suffix, BYTES)
        file "#{name}.#{suffix}", 20 + seconds.abs, modified: @public.fetch(name).modified + (seconds * SECOND), type: type
      end
    end
  end

  # Sizes.
  file "plain.txt"
  file "size-0.txt", 0
  file "size-1.txt", 1
  [16_383, 16_384, 16_385, 65_536].each { |size| file "size-#{size}.txt", size }
  file "large.bin", 300 * 1024, type: BYTES
  file "size-0.html", 0, type: HTML

  # Times.
  file "seconds.txt", modified: 1_600_000_000 * SECOND
  file "first.txt", modified: 0
  file "leap.txt", modified: (1_709_208_000 * SECOND) + 999_999_999
  file "one-ns.txt", modified: (1_600_000_000 * SECOND) + 1

  # Types.
  file "index.html", 60, type: HTML
  file "style.css", type: STYLE
  file "code.js", type: SCRIPT
  file "code.mjs", type: SCRIPT
  file "data.json", type: "application/json"
  file "PHOTO.JPG", type: "image/jpeg"
  file "photo.JpEg", type: "image/jpeg"
  file "dot.png", type: "image/png"
  file "line.svg", type: "image/svg+xml"
  file "module.wasm", type: "application/wasm"
  file "letter.woff2", type: "font/woff2"
  file "pack.gz", type: GZIP
  file "README", type: BYTES
  file "ends-in-a-dot.", type: BYTES
  file "what.no-such-type", type: BYTES
  file "txt", type: BYTES
  file "two.html.txt"

  # Folders.
  file "dir/index.html", 50, type: HTML
  file "dir/file.txt"
  file "dir/deep/index.html", 51, type: HTML
  file "dir/deep/deeper/leaf.txt"
  file "bare/file.txt"
  file "with space/index.html", 52, type: HTML
  file "caf\xC3\xA9/index.html", 53, type: HTML
  file "odd/index.html/file.txt" # the index is a folder
  file "packed/index.html", 54, type: HTML
  siblings "packed/index.html", "gz" => 1

  # Names.
  file "with space.txt"
  file "100%.txt"
  file "100%25.txt"
  file "what?.txt"
  file "tag#1.txt"
  file "new\nline.txt"
  file "a\tb.txt"
  file "a\\b.txt"
  file "plus+plus.txt"
  file "semi;colon.txt"
  file "and&=@:,$'()*!~.txt"
  file "caf\xC3\xA9.txt"
  file "latin-\xE9.txt"
  file "\xFF\xFE", type: BYTES
  file "a/b.txt"
  file "quote\"<>.txt"
  file "-dash.txt"
  file "two..dots.txt"
  file "ends..", type: BYTES
  file "#{"n" * 251}.txt"

  # Hidden.
  file ".env"
  file ".git/config"
  file "dir/.hidden.txt"
  file "dir/.well-known/file.txt"
  file "..."
  file "..two.txt"
  file ".well-known/acme.txt"
  file ".well-known/deep/token", type: BYTES
  file ".well-known/.secret"
  file ".well-known.txt"
  file ".well-knownX/file.txt"

  # Encoded siblings.
  file "all.js", 100, type: SCRIPT
  siblings "all.js"
  file "only-gz.css", 100, type: STYLE
  siblings "only-gz.css", "gz" => 1
  file "only-br.txt", 100
  siblings "only-br.txt", "br" => 1
  file "only-zst.txt", 100
  siblings "only-zst.txt", "zst" => 1
  file "same-age.txt", 100
  siblings "same-age.txt", "gz" => 0
  file "stale.txt", 100
  siblings "stale.txt", "gz" => -1
  file "stale-br.txt", 100
  siblings "stale-br.txt", "br" => -1, "gz" => 1
  file "orphan.txt.gz", type: GZIP
  file "folder-gz.txt", 100
  file "folder-gz.txt.gz/file.txt"
  file "link-gz.txt", 100
  file "pipe-gz.txt", 100
  file "large.js", 70_000, type: SCRIPT
  file "large.js.gz", 20_000, type: GZIP, modified: BORN

  # Names with a digest.
  DIGESTS = %w[app-0123abcd.js app.0123abcd.css app-0123456789abcdef0123456789abcdef.js
               app-abcdefabcdefabcdefab.js app-01234567890123456789.js site-a0000000.min-b1111111.js
               app-0123abcd.min.js app.0123abcd.chunk.js app-0123abcd.tar.gz].freeze
  NO_DIGESTS = %w[app-deadbeef.js app-12345678.js app-012abcd.js app-0123abcg.js app_0123abcd.js 0123abcd.js
                  app-0123abcd app-2023111422131.js app.js assets-0123abcd/app.js
                  assets-0123abcd.d/app.js 0123abcd.min.js app.0123abcd].freeze
  (DIGESTS + NO_DIGESTS).each do |name|
    file name, type: { ".js" => SCRIPT, ".css" => STYLE, ".gz" => GZIP }.fetch(File.extname(name), BYTES)
  end
  siblings "app-0123abcd.js", "gz" => 1

  # The second folder.
  file "404.html", 70, type: HTML, to: @pages
  file "500.html", 71, type: HTML, to: @pages
  file "plain.txt", 41, to: @pages
  file "dir/file.txt", 42, to: @pages

  # Each is a target below the first folder.
  INSIDE = { "link.txt" => "plain.txt", "dir/up.txt" => "../plain.txt", "link-dir" => "dir", "chain.txt" => "link.txt",
             "dir/deep/round.txt" => "../../dir/./file.txt" }.freeze
  OUTSIDE = { "out.txt" => "../outside.txt", "out-dir" => "..", "beside" => "../publicX", "null" => "/dev/null",
              "zero" => "/dev/zero", "loop.txt" => "loop.txt", "loop-a" => "loop-b", "loop-b" => "loop-a",
              "dangling.txt" => "not-there.txt", "dir/far.txt" => "../../outside.txt", "root" => "/", "detour.txt" => "../public/plain.txt",
              "self" => "/proc/self", "out-index/index.html" => "../../outside.txt",
              "link-gz.txt.gz" => "../outside.txt" }.freeze

  class << self
    # Makes the folders `public` and `pages`, and the files outside of them.
    # @param root [String] an empty folder
    def build(root)
      write(root, "public", @public)
      write(root, "pages", @pages)
      write(root, "publicX", "secret.txt" => Entry.new("secret", BORN, TEXT))
      write(root, ".", "outside.txt" => Entry.new("outside", BORN, TEXT))
      others(File.join(root, "public"))
    end

    private

    def write(root, folder, files)
      files.each do |name, entry|
        path = File.join(root.b, folder, name)
        FileUtils.mkdir_p(File.dirname(path))
        File.binwrite(path, entry.content)
        seconds, nanoseconds = entry.modified.divmod(SECOND)
        time = Time.at(seconds, nanoseconds, :nsec)
        File.utime(time, time, path)
      end
    end

    # Entries that are not regular files.
    def others(folder)
      FileUtils.mkdir_p([File.join(folder, "empty"), File.join(folder, "out-index")])
      INSIDE.merge(OUTSIDE).each { |name, target| File.symlink(target, File.join(folder, name)) }
      File.symlink(File.join(folder, "plain.txt"), File.join(folder, "absolute.txt"))
      File.link(File.join(folder, "plain.txt"), File.join(folder, "hard.txt"))
      File.mkfifo(File.join(folder, "fifo"))
      File.mkfifo(File.join(folder, "pipe-gz.txt.gz"))
      Dir.chdir(folder) { UNIXServer.new("socket").close } # a short name: the folder's may be too long for one
    end
  end
end
