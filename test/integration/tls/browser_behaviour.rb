# frozen_string_literal: true

# What a real browser does over https: a page, fetch, a file and parts of it, events, a WebSocket. The test that includes it
# is a TLSCase.
# SPDX-License-Identifier: MIT

require_relative "tls_case"
require "support/browser"

module BrowserBehaviour
  APP = <<~'RUBY'
    ECHO = Module.new do
      def self.on_message(client, data) = client.write(data)
    end
    TICKS = Module.new do
      def self.on_open(client)
        2.times { |n| client.event("#{n} after #{client.env["HTTP_LAST_EVENT_ID"].inspect}", id: n) }
        client.close
      end
    end
    run lambda { |env|
      case env["rack.upgrade?"]
      when :websocket then env["rack.upgrade"] = ECHO
      when :sse then env["rack.upgrade"] = TICKS
      end
      case env["PATH_INFO"]
      when "/size" then [200, {}, [env["rack.input"].read.bytesize.to_s]]
      when "/parts" then [200, {}, Enumerator.new { |y| 3.times { |n| y << "part #{n} " } }]
      when "/set" then [302, { "location" => "/told", "set-cookie" => "kept=1; Secure; HttpOnly; Path=/" }, []]
      when "/told" then [200, {}, [env.values_at("HTTP_COOKIE", "rack.url_scheme", "HTTP_REFERER").join(" ")]]
      else [200, { "content-type" => "text/html" }, ["<!DOCTYPE html><title>#{env["rack.url_scheme"]}</title>"]]
      end
    }
  RUBY

  def setup
    skip "chromium is not installed" unless Chromium.find
    super
    write "config.ru", APP
    Dir.mkdir(File.join(@folder, "files"))
    write "files/numbers.txt", "0123456789" * 300_000
    @server = secure("--public", File.join(@folder, "files"))
    @page = Chromium.shared.open("https://localhost:#{@server.port}/")
  end

  def teardown
    @page&.close
    super
  end

  def text_of(path, options = "{}")
    @page.run("fetch('#{path}', #{options}).then(answer => answer.text())")
  end

  def test_a_page_and_fetch
    assert_equal ["https", "https:", true], @page.run("[document.title, location.protocol, isSecureContext]")
    assert_equal "part 0 part 1 part 2 ", text_of("/parts")
    assert_equal "1000000", text_of("/size", "{ method: 'POST', body: new Uint8Array(1000000) }")
    assert_equal "kept=1 https https://localhost:#{@server.port}/", text_of("/set")
    sizes = "Promise.all(Array.from({ length: 20 }, () => fetch('/size', { method: 'POST', body: 'x'.repeat(70000) })" \
            ".then(answer => answer.text())))"
    assert_equal ["70000"] * 20, @page.run(sizes)
    check_a_file
    assert_empty @page.errors
  end

  def check_a_file
    digits = "0123456789"
    assert_equal true, @page.run("fetch('/numbers.txt').then(it => it.text()).then(text => text === '#{digits}'.repeat(300000))")
    assert_equal "890123", text_of("/numbers.txt", "{ headers: { range: 'bytes=1000008-1000013' } }")
  end

  def test_events_and_a_websocket
    check_events
    check_websocket
    assert_empty @page.errors
  end

  # The browser comes again after the end, with the last id.
  def check_events
    @page.run("globalThis.seen = []; globalThis.source = new EventSource('/');
               source.onmessage = ({ data, lastEventId }) => seen.push(data + ' ' + lastEventId); 0")
    @page.wait_for("seen.length >= 4")
    assert_equal ["0 after nil 0", "1 after nil 1", '0 after "1" 0', '1 after "1" 1'], @page.run("source.close(); seen.slice(0, 4)")
  end

  def check_websocket
    @page.run(<<~SCRIPT)
      globalThis.seen = []; globalThis.socket = new WebSocket(location.origin.replace("http", "ws"));
      globalThis.large = "x\\u20ac".repeat(50000);
      socket.onopen = () => ["h\\u00e4llo", large].forEach(text => socket.send(text));
      socket.onmessage = ({ data }) => { seen.push(data === large ? "large" : data); if (seen.length == 2) socket.close(4001); };
      socket.onclose = ({ code, wasClean }) => seen.push(code + " " + wasClean);
    SCRIPT
    @page.wait_for("seen.length >= 3")
    assert_equal ["hällo", "large", "4001 true"], @page.run("[socket.url, ...seen]").drop(1)
    assert_match(/\Awss:/, @page.run("socket.url"))
  end
end
