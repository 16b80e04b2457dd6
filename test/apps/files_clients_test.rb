# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# A static folder and those who fetch from it: curl and wget that resume what was cut and ask again only for
# what has changed, a browser that plays, seeks, and takes scripts only for what they are.

require_relative "app_case"
require "open3"
require "support/browser"
require "support/webm"
require "support/wiretap"
require "zlib"

class FilesClientsTest < AppCase
  DATA = Random.new(14).bytes(3_000_000)
  TEXT = "a line of text that is there many times\n" * 5000

  class << self
    # What is served, and where clients put what they have fetched.
    def folder
      @folder ||= Dir.mktmpdir("rondo-files").tap { |path| %w[www out].each { |name| Dir.mkdir("#{path}/#{name}") } }
    end

    def start_server
      app = File.join(folder, "config.ru")
      File.write(app, "run ->(_) { [404, { 'content-length' => '0' }, []] }\n")
      ServerProcess.new(app, args: ["-www", File.join(folder, "www")])
    end

    def stop_server
      super
    ensure
      FileUtils.rm_rf(@folder) if @folder
      @folder = nil
    end
  end

  def teardown
    @page&.close
    super
  end

  # @return [String] its path
  def serve(name, bytes, modified: Time.at(1_700_000_000))
    path = File.join(self.class.folder, "www", name)
    File.binwrite(path, bytes)
    File.utime(modified, modified, path)
    path
  end

  def out(name = "")
    File.join(self.class.folder, "out", name)
  end

  def wiretap(&block)
    Wiretap.open(server.url, &block)
  end

  def need(program)
    skip "#{program} is not installed" unless system("command -v #{program} >/dev/null 2>&1")
  end

  # @return [Array(String, Integer)] what it printed, its exit status
  def curl(*arguments)
    need("curl")
    output, status = Open3.capture2e("curl", "-q", "-sS", "--noproxy", "*", "-m", "30", *arguments)
    [output, status.exitstatus]
  end

  # @return [Array(String, String)] head and body of an answer
  def fetch(*arguments)
    output, status = curl("-D", out("head"), "-o", out("body"), *arguments)
    assert_equal 0, status, output
    [File.binread(out("head")), File.exist?(out("body")) ? File.binread(out("body")) : ""]
  ensure
    FileUtils.rm_f([out("head"), out("body")])
  end

  def wget(*arguments)
    need("wget")
    output, status = Open3.capture2e("wget", "--no-config", "--no-proxy", "-nv", "-T", "30", "--waitretry=0", "-P", out,
                                     *arguments)
    [output, status.exitstatus]
  end

  def ranges(line, path)
    line.exchanges(path).map(&:range)
  end

  def test_curl_resumes
    serve("curl.bin", DATA)
    wiretap do |line|
      line.cut(1, 70_000, 2_000_000)
      statuses = Array.new(5) { curl("-C", "-", "-o", out("curl.bin"), "#{line.url}/curl.bin").last }
      assert_equal [18, 18, 18, 0, 0], statuses # 18: it ended too early
      assert_equal [nil, "bytes=1-", "bytes=70001-", "bytes=2070001-", "bytes=3000000-"], ranges(line, "/curl.bin")
      assert_equal [200, 206, 206, 206, 416], line.exchanges.map(&:status)
    end
    assert_equal DATA, File.binread(out("curl.bin"))
  end

  def test_wget_resumes
    serve("wget.bin", DATA)
    File.binwrite(out("wget.bin"), DATA[0, 12_345])
    wiretap do |line|
      line.cut(1, 70_000, 2_000_000)
      output, status = wget("-c", "-t", "9", "#{line.url}/wget.bin")
      assert_equal 0, status, output
      assert_equal ["bytes=12345-", "bytes=12346-", "bytes=82346-", "bytes=2082346-"], ranges(line, "/wget.bin")
      assert_equal 0, wget("-c", "#{line.url}/wget.bin").last # nothing is left to do
      assert_equal 416, line.exchanges.last.status
    end
    assert_equal DATA, File.binread(out("wget.bin"))
  end

  def test_curl_asks_whether_it_was_modified
    path = serve("dated.txt", "old")
    head, body = fetch("#{server.url}/dated.txt")
    assert_equal "old", body
    assert_match(/^last-modified: Tue, 14 Nov 2023 22:13:20 GMT\r$/i, head)
    head, body = fetch("-z", path, "#{server.url}/dated.txt")
    assert_match(/\AHTTP\S+ 304 /, head)
    assert_empty body
    serve("dated.txt", "renewed", modified: Time.now - 60)
    since = ["-z", "2023-11-14 22:13:20 GMT"]
    assert_equal "renewed", until_fresh("renewed") { fetch(*since, "#{server.url}/dated.txt")[1] }
  end

  def test_wget_asks_whether_it_was_modified
    serve("stamped.txt", "old")
    wiretap do |line|
      2.times { assert_equal 0, wget("-N", "#{line.url}/stamped.txt").last }
      assert_equal [200, 304], line.exchanges.map(&:status)
    end
    assert_equal [Time.at(1_700_000_000), "old"], [File.mtime(out("stamped.txt")), File.read(out("stamped.txt"))]
  end

  def test_curl_compares_etags
    serve("tagged.txt", "old")
    head, body = fetch("--etag-save", out("etag"), "#{server.url}/tagged.txt")
    assert_match(/^etag: "[^"]+"\r$/i, head)
    assert_equal "old", body
    head, body = fetch("--etag-compare", out("etag"), "#{server.url}/tagged.txt")
    assert_match(/\AHTTP\S+ 304 /, head)
    assert_empty body
    serve("tagged.txt", "new", modified: Time.at(1_700_000_001))
    assert_equal "new", until_fresh("new") { fetch("--etag-compare", out("etag"), "#{server.url}/tagged.txt")[1] }
  end

  # A file may be looked at only once in a while.
  def until_fresh(expected)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 10
    loop do
      found = yield
      return found if found == expected || Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
    end
  end

  def test_curl_decompresses
    assert_encoded("gz", "gzip", Zlib.gzip(TEXT))
    need("node")
    assert_encoded("br", "br", filter(TEXT, "node", "-e", <<~SCRIPT))
      process.stdout.write(require("zlib").brotliCompressSync(require("fs").readFileSync(0)))
    SCRIPT
    need("zstd")
    assert_encoded("zst", "zstd", filter(TEXT, "zstd", "-c"))
  end

  def filter(bytes, *command)
    output, status = Open3.capture2(*command, stdin_data: bytes, binmode: true)
    assert status.success?, command.first
    output
  end

  def assert_encoded(extension, coding, bytes)
    skip "curl cannot decode #{coding}" unless coding == "gzip" || curl("-V")[0].match?(/^Features:.* #{coding}/)
    name = "text-#{coding}.css"
    serve(name, TEXT)
    serve("#{name}.#{extension}", bytes)
    head, body = fetch("--compressed", "#{server.url}/#{name}")
    assert_equal TEXT, body
    ["content-encoding: #{coding}", "content-length: #{bytes.bytesize}", "content-type: text/css; charset=utf-8",
     "vary: accept-encoding"].each { |line| assert_match(/^#{line}\r$/i, head) }
    head, body = fetch("#{server.url}/#{name}")
    assert_equal TEXT, body
    refute_match(/^content-encoding:/i, head)
    assert_match(/^vary: accept-encoding\r$/i, head)
  end

  def test_curl_takes_several_parts
    serve("parts.bin", DATA)
    head, body = fetch("-r", "0-9,20-29", "#{server.url}/parts.bin")
    assert_match(/\AHTTP\S+ 206 /, head)
    assert_equal [["bytes 0-9/3000000", DATA[0, 10]], ["bytes 20-29/3000000", DATA[20, 10]]], parts(head, body)
    head, body = fetch("-r", "-5", "#{server.url}/parts.bin")
    assert_match(%r{^content-range: bytes 2999995-2999999/3000000\r$}i, head)
    assert_equal DATA[-5..], body
  end

  # RFC 2046, section 5.1.1.
  # @return [Array<Array(String, String)>] content-range and bytes
  def parts(head, body)
    boundary = head[%r{^content-type: multipart/byteranges; *boundary="?([^"\r]+)"?\r$}i, 1]
    assert boundary, head
    before, *parts, after = "\r\n#{body}".b.split("\r\n--#{boundary}", -1)
    assert_equal ["", "--"], [before, after].map(&:strip)
    parts.map do |part|
      fields, bytes = part.split("\r\n\r\n", 2)
      [fields[/^content-range: ([^\r]*)/i, 1], bytes]
    end
  end

  # ---- a browser

  def open_page(line, html)
    skip "chromium is not installed" unless Chromium.find
    serve("#{name}.html", html)
    @page = Chromium.shared.open("#{line.url}/#{name}.html")
  end

  # Moves a player to another time.
  # @return [Float] where it is then
  def seek(page, seconds)
    page.run(<<~SCRIPT)
      new Promise((resolve, reject) => {
        player.onseeked = () => resolve(player.currentTime);
        player.onerror = () => reject(player.error.message);
        player.currentTime = #{seconds};
      })
    SCRIPT
  end

  # That it has asked for what is there, without all that comes before.
  def assert_jump(line, path, offset)
    exchanges = line.exchanges(path)
    assert_equal [206], exchanges.map(&:status).uniq
    jumps = exchanges.filter_map { |exchange| exchange.range[/\Abytes=(\d+)-\d*\z/, 1]&.to_i }
    assert(jumps.any? { |from| from > offset * 0.9 }, jumps.inspect)
  end

  def test_a_browser_seeks_in_a_sound
    size = 300 * 176_400 # five minutes of silence, of which the disk keeps nothing
    header = ["RIFF", size + 36, "WAVEfmt ", 16, 1, 2, 44_100, 176_400, 4, 16, "data", size].pack("a4Va8VvvVVvva4V")
    File.truncate(serve("silence.wav", header), size + 44)
    wiretap do |line|
      page = open_page(line, "<audio id=player preload=metadata src=silence.wav></audio>")
      page.wait_for("player.duration == 300")
      assert_in_delta 290, seek(page, 290)
      assert_jump(line, "/silence.wav", 290 * 176_400)
      assert_in_delta 1, seek(page, 1)
      assert_equal "audio/wav", line.exchanges("/silence.wav").first.answered("content-type")
    end
  end

  def test_a_browser_plays_a_film_and_seeks_in_it
    wiretap do |line|
      page = open_page(line, "<canvas id=canvas width=640 height=480></canvas>")
      serve("film.webm", film = Webm.film(picture(page), width: 640, height: 480, seconds: 120))
      page.run("document.body.innerHTML = '<video id=player muted preload=metadata src=film.webm></video>'")
      page.wait_for("player.duration == 120 && player.videoWidth == 640")
      page.run("player.play()")
      page.wait_for("player.currentTime > 0")
      page.run("player.pause()")
      assert_in_delta 110.5, seek(page, 110.5)
      page.run("player.play()")
      page.wait_for("player.currentTime > 110.5")
      assert_jump(line, "/film.webm", film.bytesize * 110 / 120)
      assert_empty page.errors
    end
  end

  # @return [String] noise, as WebP
  def picture(page)
    page.run(<<~SCRIPT).split(",").last.unpack1("m")
      (() => {
        const pen = canvas.getContext("2d", { alpha: false }), image = pen.createImageData(640, 480);
        for (let i = 0; i < image.data.length; i++) image.data[i] = i % 4 == 3 ? 255 : (i * i * 2654435761) >>> 24;
        pen.putImageData(image, 0, 0);
        return canvas.toDataURL("image/webp", 0.9);
      })()
    SCRIPT
  end

  ADD_WASM = ["0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b"].pack("H*").freeze

  PAGE = <<~HTML
    <!DOCTYPE html>
    <link rel=stylesheet href=site.css>
    <script src=classic.js></script>
    <script type=module src=main.mjs></script>
    <img id=image src=image.svg>
    <p id=text>text</p>
  HTML

  def serve_site
    serve("site.css", "#text { color: rgb(1, 2, 3) }")
    serve("classic.js", "window.classic = 'é'")
    serve("part.js", "export const part = 'part'")
    serve("add.wasm", ADD_WASM)
    serve("data.json", '{"text":"é"}')
    serve("image.svg", '<svg xmlns="http://www.w3.org/2000/svg" width="7" height="8"/>')
    serve("main.mjs", <<~SCRIPT)
      import { part } from "./part.js"
      const wasm = await WebAssembly.instantiateStreaming(fetch("add.wasm"))
      const data = await (await fetch("data.json")).json()
      window.result = [part, wasm.instance.exports.add(2, 3), data.text]
    SCRIPT
  end

  def test_a_browser_takes_scripts_for_scripts
    serve_site
    wiretap do |line|
      page = open_page(line, PAGE)
      assert_equal ["part", 5, "é"], page.wait_for("window.result")
      assert_equal ["é", 7, "rgb(1, 2, 3)"], page.run("[classic, image.width, getComputedStyle(text).color]")
      files = line.exchanges.reject { |exchange| exchange.path == "/favicon.ico" }
      assert_equal ["nosniff"], files.map { |exchange| exchange.answered("x-content-type-options") }.uniq
      assert_empty page.errors
      revalidates(page, line)
    end
  end

  def revalidates(page, line)
    assert_equal "export const part = 'part'", page.run("fetch('part.js', { cache: 'no-cache' }).then(r => r.text())")
    exchange = line.exchanges("/part.js").last
    assert_equal 304, exchange.status
    assert_equal exchange.answered("etag"), exchange.requested("if-none-match")
  end

  def test_a_browser_takes_nothing_else_for_a_script
    serve("notes.txt", "window.notes = 1")
    wiretap do |line|
      page = open_page(line, "<!DOCTYPE html><p>nothing</p>")
      %w[script link].zip(%w[src href]) do |element, attribute|
        assert_equal "error", page.run(<<~SCRIPT)
          new Promise(resolve => {
            const element = document.createElement("#{element}");
            element.onload = element.onerror = event => resolve(event.type);
            Object.assign(element, { #{attribute}: "notes.txt", rel: "stylesheet" });
            document.head.append(element);
          })
        SCRIPT
      end
      assert_equal "undefined", page.run("typeof notes")
      assert_equal [200], line.exchanges("/notes.txt").map(&:status).uniq
    end
  end
end
