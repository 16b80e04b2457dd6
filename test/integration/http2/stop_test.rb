# frozen_string_literal: true

# What happens to streams of HTTP/2 when their server stops, restarts, or is killed.
# SPDX-License-Identifier: MIT

require_relative "http2_case"

class HTTP2StopTest < HTTP2Case
  def setup
    super
    File.mkfifo(File.join(@folder, "gate"))
  end

  def test_a_request_in_flight_is_answered
    { 0 => "TERM", 2 => "TERM" }.each do |workers, signal|
      server = serve("-w", workers.to_s)
      answer = Thread.new { curl2(server, "/gate") }
      server.wait_for_log(/^at the gate$/)
      server.signal(signal)
      write_gate
      assert_equal "through", answer.value.out
      server.stop
    end
  end

  def test_a_request_in_flight_during_a_phased_restart
    server = serve("-w", "2")
    answer = Thread.new { curl2(server, "/gate") }
    server.wait_for_log(/^at the gate$/)
    server.signal("USR1")
    write_gate
    assert_equal "through", answer.value.out
    server.wait_for_log(/^- Worker 1 .* phase: 1$/)
    assert_equal "hello", curl2(server).out
  end

  # The client learns by GOAWAY that it must not send more, and its connection ends.
  def test_an_idle_connection
    server = serve
    script = <<~JS
      session.on("goaway", (code) => console.log("goaway " + code));
      session.on("close", () => console.log("closed"));
      ask({ ":path": "/" }).then((answer) => { console.log(answer[1]); process.kill(#{server.pid}, "SIGTERM"); });
    JS
    result = node(server, script)
    assert_equal "hello\ngoaway 0\n", result.out.lines.first(2).join, result.err
    assert_match(/closed\n\z/, result.out)
  end

  private

  # Opens only when somebody reads it.
  def write_gate
    Timeout.timeout(PATIENCE) { File.write(File.join(@folder, "gate"), "x") }
  end
end
