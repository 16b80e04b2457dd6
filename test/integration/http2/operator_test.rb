# frozen_string_literal: true

# What the operator is told of HTTP/2: /stats and /metrics of the control server.
# SPDX-License-Identifier: MIT

require_relative "http2_case"
require "json"

class HTTP2OperatorTest < HTTP2Case
  # @return [String] body of a page of the control server
  def page(name)
    UNIXSocket.open(@control.delete_prefix("unix://")) do |socket|
      socket.write("GET /#{name} HTTP/1.0\r\n\r\n")
      socket.read[/\r\n\r\n(.*)\z/m, 1]
    end
  end

  def watched
    write "http2.rb", "http2 true\nmax_streams 2\n"
    server = serve("--control-url", "auto", "--control-token", "none")
    @control = server.wait_for_log(/Control server on (\S+)/)[1]
    server
  end

  def await(*expected)
    names = %w[http2_connections http2_streams http2_streams_refused].map { |name| /"#{name}": ?(\d+)/ }
    eventually("the numbers #{expected}") do
      stats = page("stats")
      names.map { |name| stats[name, 1].to_i } == expected
    end
  end

  # Whoever waits at the gate.
  def let_through
    File.open(File.join(@folder, "gate"), File::WRONLY | File::NONBLOCK, &:close)
  rescue Errno::ENXIO
    nil
  end

  # Three streams of one session, where two may be.
  THREE = <<~JS
    Promise.all([1, 2, 3].map(() => ask({ ":path": "/gate" }))).then((all) => {
      console.log(all.map((one) => one[2] || one[1]).sort().join());
      session.close();
    });
  JS

  def test_numbers
    File.mkfifo(File.join(@folder, "gate"))
    server = watched
    await(0, 0, 0)
    client = Thread.new { node(server, THREE) }
    await(1, 2, 1)
    let_through until client.join(0.01)
    assert_equal "ERR_HTTP2_STREAM_ERROR,through,through\n", client.value.out
    await(0, 0, 1)
    metrics = page("metrics")
    assert_match(/^rondo_http2_streams_refused_total\{.*\} 1$/, metrics)
    assert_match(/^rondo_http2_connections\{.*\} 0$/, metrics)
  end
end
