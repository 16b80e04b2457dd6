# frozen_string_literal: true

# Requests over TLS, as clients that are not ours make them.
# SPDX-License-Identifier: MIT

require_relative "tls_case"
require "digest"
require "support/websocket_frames"

class TLSRequestsTest < TLSCase
  def test_the_application_is_told
    server = secure
    assert_match(/^\* Listening on #{server.url}$/, server.log)
    assert_equal "https://127.0.0.1:#{server.port}", server.url
    assert_equal "https on #{server.port}", curl(server).out
  end

  def test_bodies_both_ways
    server = secure
    write "upload", "x" * 5_000_000
    assert_equal "5000000", curl(server, "/size", "-T", "upload").out
    assert_equal "5000000", curl(server, "/size", "-T", "upload", "-H", "transfer-encoding: chunked").out
    assert_equal "0123456789" * 300_000, curl(server, "/big").out
    assert_equal "part 0 part 1 part 2 ", curl(server, "/parts").out
  end

  def test_files_and_parts_of_them
    bytes = Random.new(1).bytes(9_000_000)
    write "public/file", ""
    File.binwrite(File.join(@folder, "public/file"), bytes)
    server = secure("--public", "public")
    { [] => bytes, %w[-r 1000-5000000] => bytes[1000..5_000_000], %w[-r -7] => bytes[-7..] }.each do |words, expected|
      curl(server, "/file", "-o", "got", *words)
      assert_equal Digest::SHA256.hexdigest(expected), Digest::SHA256.file(File.join(@folder, "got")).hexdigest, words
    end
  end

  def test_many_requests_of_one_connection
    server = secure
    result = run_command("curl", "-sS", "--cacert", @certificates.authority, "-w", "%{num_connects} ", "-o", File::NULL,
                         *(["#{server.url}/"] * 20).flat_map { |url| [url, "-o", File::NULL] }[0...-2])
    assert_equal "1 #{"0 " * 19}", result.out, result.err
  end

  def test_a_full_hijack_is_an_io
    connect(secure) do |client|
      client.write("GET /hijack HTTP/1.1\r\nhost: a\r\n\r\nhello\n")
      assert_equal "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello\n", client.read
    end
  end

  def test_websocket_and_events
    write "config.ru", <<~RUBY
      class Echo
        def on_open(client) = client.write("open")
        def on_message(client, text) = client.write(text)
      end
      run ->(env) { env["rack.upgrade?"] ? (env["rack.upgrade"] = Echo.new) && [200, {}, []] : [404, {}, []] }
    RUBY
    server = secure
    connect(server) { |client| check_websocket(client) }
    connect(server) do |client|
      client.write("GET / HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\r\n")
      text = +""
      text << client.readpartial(1000) until text.include?("open\n\n")
      assert_match(%r{\AHTTP/1.1 200 .*content-type: text/event-stream.*data: ?open\n\n\z}m, text)
    end
  end

  def check_websocket(client)
    client.write("GET / HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n" \
                 "sec-websocket-key: #{["a" * 16].pack("m0")}\r\n\r\n#{WebsocketFrames.frame(1, "hello")}")
    text = +"".b
    text << client.readpartial(1000) until text.end_with?("\x81\x05hello".b)
    assert_match(%r{\AHTTP/1.1 101 }, text)
    assert_includes text, "\x81\x04open".b
  end

  def test_an_answer_that_ends_the_connection_ends_tls_too
    connect(secure) do |client|
      client.write("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
      assert_match(/\r\n\r\nhttps on \d+\z/, client.read) # raises without close_notify
    end
  end

  # What came before is whole, and a client that looks for close_notify sees that it was not all.
  def test_a_cut_answer_has_no_orderly_end
    server = secure
    { "/short" => "content-length: 8", "/raises" => "transfer-encoding: chunked" }.each do |path, framing|
      connect(server) do |client|
        client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\nGET #{path} HTTP/1.1\r\nhost: a\r\n\r\n")
        text = +""
        error = assert_raises(OpenSSL::SSL::SSLError) { loop { text << client.readpartial(1000) } }
        assert_match(/unexpected eof/, error.message)
        assert_match(%r{\r\n\r\nhttps on \d+HTTP/1.1 200 .*#{framing}.*\r\n\r\n(4\r\n)?half(\r\n)?\z}m, text)
      end
      assert_match(/\Acurl: \((18|56)\) /, curl(server, path, "--http1.1").err)
    end
  end
end
