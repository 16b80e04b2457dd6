# frozen_string_literal: true

# Readers of event streams: a browser's EventSource, curl, and clients behind nginx or haproxy.
# SPDX-License-Identifier: MIT

require_relative "sse_case"
require "English"
require "json"
require "net/http"
require "support/browser"
require "support/proxy_process"

class SSEClientsTest < SSECase
  # The calls of the application, and the events that a client has to get: name, data, last id.
  FIELDS = [
    [["plain"], "message", "plain", ""],
    [[""], "message", "", ""],
    [["a\nb\rc\r\nd"], "message", "a\nb\nc\nd", ""],
    [["\n"], "message", "\n", ""],
    [["\r\n\r\n"], "message", "\n\n", ""],
    [["tail\r"], "message", "tail\n", ""],
    [["\n\rx"], "message", "\n\nx", ""],
    [[" one blank, two  "], "message", " one blank, two  ", ""],
    [["id: 9\nevent: evil\n\ndata: more"], "message", "id: 9\nevent: evil\n\ndata: more", ""],
    [[": no comment"], "message", ": no comment", ""],
    [["\u{FEFF}marked"], "message", "\u{FEFF}marked", ""],
    [["a\0b"], "message", "a\0b", ""],
    [["\u2028\u2029\u0085\v\f"], "message", "\u2028\u2029\u0085\v\f", ""],
    [["hällo 😀"], "message", "hällo 😀", ""],
    [["x" * 100_000], "message", "x" * 100_000, ""],
    [["x\r\n" * 20_000], "message", "x\n" * 20_000, ""],
    [["1", { event: "tick" }], "tick", "1", ""],
    [["2", { event: "tick", id: "a" }], "tick", "2", "a"],
    [["3"], "message", "3", "a"],
    [["4", { event: "", id: "" }], "message", "4", ""],
    [["5", { event: " blank: ä", id: " b:ä" }], " blank: ä", "5", " b:ä"],
    [["6", { event: :tick, id: 2**64, retry: 12 }], "tick", "6", (2**64).to_s],
    [[nil, { id: "silent", event: "tick", retry: 0 }], nil, nil, nil],
    [["7"], "message", "7", "silent"],
    [[{ "a" => ["ü\n", nil] }, { id: 1 }], "message", '{"a":["ü\\n",null]}', "1"],
    [["end", { event: "end" }], "end", "end", "1"]
  ].freeze
  EXPECTED = FIELDS.map { |_sent, *arrives| arrives }.select(&:first).freeze

  PAGE = <<~HTML
    <!DOCTYPE html><meta charset="utf-8">
    <script>
      globalThis.seen = [];
      globalThis.listen = (path, names) => {
        globalThis.source = new EventSource(path);
        const note = ({ type, data, lastEventId }) => seen.push([type, data, lastEventId]);
        ["message", ...names].forEach(name => source.addEventListener(name, note));
        source.onopen = () => seen.push(["opened"]);
        source.onerror = () => seen.push(["error", source.readyState]);
      };
    </script>
  HTML

  # Reads through Net::HTTP on a thread of its own; pushes the head's fields, then events, then nil.
  class Through
    def initialize(url)
      @found = Queue.new
      @thread = Thread.new { read(URI(url)) }
    end

    def hear = Timeout.timeout(RackCase::PATIENCE) { @found.pop }

    def close
      @thread.kill.join
    end

    private

    def read(uri)
      stream = EventStream.new
      Net::HTTP.start(uri.host, uri.port) do |http|
        http.request(Net::HTTP::Get.new("/", { "Accept" => "text/event-stream" })) do |response|
          @found << response.to_hash
          response.read_body { |part| stream.feed(part).events.shift(stream.events.size).each { |event| @found << event } }
        end
      end
      @found << nil
    end
  end

  def setup
    super
    @pages = []
  end

  def teardown
    @pages.each(&:close)
    super
  end

  # ---- what arrives

  def send_fields(client)
    FIELDS.map(&:first).each { |data, options| client.event(data, **options.to_h) }
  end

  def test_fields_by_the_letter_of_the_standard
    reader = serve_stream(Handler.new { |client| send_fields(client) })
    EXPECTED.each { |expected| assert_equal expected, reader.hear_all }
    assert_equal 0, reader.stream.retry
  end

  def open_page(handler, &other)
    skip "chromium is not installed" unless Chromium.find
    start(lambda { |env|
      next [200, { "content-type" => "text/html" }, [PAGE]] if env["PATH_INFO"] == "/page"

      other&.call(env) || app_of(handler).call(env)
    })
    Chromium.shared.open("#{@running.last.url}/page").tap { |page| @pages << page }
  end

  def seen(page, count)
    page.wait_for("seen.length >= #{count}")
    page.run("seen.splice(0)")
  end

  def test_fields_in_a_browser
    page = open_page(Handler.new { |client| send_fields(client) })
    page.run("listen('/', #{JSON.generate(EXPECTED.map(&:first).uniq - ["message"])})")
    assert_equal ["opened"], page.wait_for("seen[0]")
    events = seen(page, EXPECTED.size + 1).drop(1)
    EXPECTED.zip(events) { |expected, event| assert_equal expected, event }
    page.run("source.close()")
  end

  def test_a_browser_comes_back_where_it_was
    handler = Handler.new { |client| client.event(client.env["HTTP_LAST_EVENT_ID"].to_s, id: "ä 1", retry: 1) }
    answers = Queue.new
    page = open_page(handler) { answers.pop(true) unless answers.empty? }
    page.run("listen('/', [])")
    assert_equal [["opened"], ["message", "", "ä 1"]], seen(page, 2)
    handler.client.close
    assert_equal [["error", 0], ["opened"], ["message", "ä 1", "ä 1"]], seen(page, 3)
    answers << [204, {}, []]
    handler.client.close
    assert_equal [["error", 0], ["error", 2]], seen(page, 2), "204 is the end"
  end

  def test_a_browser_that_leaves
    handler = Handler.new { |client| client.write("x") }
    page = open_page(handler)
    page.run("listen('/', [])")
    seen(page, 2)
    page.run("source.close()")
    assert_equal ["open", "close 1006 false false -1"], Array.new(2) { handler.hear }
  end

  # ---- curl

  def test_curl
    skip "curl is not installed" unless system("command -v curl >/dev/null")
    handler = Handler.new { |client| client.event("first", id: 1) }
    start(app_of(handler))
    IO.popen(["curl", "-sN", "--max-time", "30", "-H", "Accept: text/event-stream", @running.last.url]) do |curl|
      assert_equal ["id: 1\n", "data: first\n", "\n"], Array.new(3) { curl.gets }
      client = handler.client
      client.write("second")
      assert_equal ["data: second\n", "\n"], Array.new(2) { curl.gets }
      client.close
      assert_nil curl.gets
    end
    assert_predicate $CHILD_STATUS, :success?
  end

  # ---- proxies

  def behind(name, **options)
    skip "#{name} is not installed" unless ProxyProcess.find(name)
    handler = Handler.new { |client| client.write("first") }
    start(app_of(handler, headers: { "set-cookie" => "a=b" }), ping_interval_ms: 500)
    proxy = ProxyProcess.new(name, @running.last.port, patience: "30s", **options)
    yield handler, proxy.url
  ensure
    proxy&.stop
  end

  # Every event has to arrive while the stream is open.
  def check_proxy(name, **options)
    behind(name, **options) do |handler, url|
      reader = Through.new(url)
      @readers << reader
      head = reader.hear
      assert_equal [["text/event-stream"], ["no-cache"], ["a=b"]], head.values_at("content-type", "cache-control", "set-cookie")
      assert_equal "first", reader.hear.data
      client = handler.client
      3.times do |n|
        client.event("line\n#{n}", id: n)
        assert_equal ["message", "line\n#{n}", n.to_s], reader.hear.to_a
      end
      client.close
      assert_nil reader.hear
      check_leaving(handler, url)
    end
  end

  def check_leaving(handler, url)
    assert_equal ["open", "close 1000 false false -1"], Array.new(2) { handler.hear }
    Through.new(url).tap { |other| 2.times { other.hear } }.close
    assert_equal ["open", "close 1006 false false -1"], Array.new(2) { handler.hear }
  end

  def test_nginx = check_proxy("nginx")
  def test_nginx_by_its_defaults = check_proxy("nginx", nginx: "")
  def test_nginx_without_buffers = check_proxy("nginx", nginx: "proxy_buffering off;")
  def test_haproxy = check_proxy("haproxy")
end
