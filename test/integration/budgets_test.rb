# frozen_string_literal: true

# Many clients take all there is of one resource and then stop. The others are served, the application keeps its files,
# and the log and the numbers show what happened.
# SPDX-License-Identifier: MIT

require_relative "control/control_case"

class BudgetsTest < ControlCase
  FILES = <<~RUBY
    run lambda { |env|
      files = Array.new(40) { File.open("/dev/null") }
      files.each(&:close)
      [200, { "content-type" => "text/plain" }, [env["rack.input"].read.bytesize.to_s]]
    }
  RUBY
  UPLOAD = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n#{"x" * 70_000}".freeze

  def teardown
    @crowd&.each(&:close)
    super
  end

  # 448 of the 512 descriptors are for clients, a quarter of them for bodies.
  def test_uploads_that_stay_leave_the_application_its_descriptors
    write "config.ru", FILES
    server = controlled(spawn: { rlimit_nofile: 512 })
    Net::HTTP.start("127.0.0.1", server.port, read_timeout: PATIENCE, keep_alive_timeout: PATIENCE) do |kept|
      gather(300, server.port, UPLOAD)
      eventually("an answer for all") { number(server, "body_files_refused_total") == 188 }
      assert_equal 112, number(server, "body_files")
      assert_equal "10", kept.post("/", "x" * 10).body
      assert_equal "200", get(server).code
      assert_equal 188, @crowd.count { |client| answered?(client, /\AHTTP.1.1 503 /) }
      server.wait_for_log(/no file descriptor is left to store the body/)
    end
    assert_operator server.log.scan("no file descriptor is left").size, :<, 30
  end

  LARGE = "run ->(env) { [200, {}, [env['PATH_INFO'] == '/large' ? 'x' * 8_000_000 : 'small']] }\n"

  # The kernel takes some megabytes of each answer; the server holds the rest.
  def test_clients_that_do_not_read_are_closed_when_they_hold_too_much
    write "config.ru", LARGE
    write "rondo.rb", "total_output_bytes 20_000_000\n"
    server = controlled("-C", "rondo.rb")
    gather(20, server.port, "GET /large HTTP/1.1\r\nhost: a\r\n\r\n")
    eventually("all requests") { number(server, "requests_total") == 20 }
    eventually("room") { number(server, "output_bytes") <= 20_000_000 }
    assert_operator number(server, "output_bytes_refused_total"), :>=, 8
    assert_equal "small", get(server).body
    assert_equal 8_000_000, get(server, "/large").body.bytesize
    server.wait_for_log(/Closed the connection of 127.0.0.1: clients that do not read fill .*; the limit is total_output_bytes/)
  end

  private

  def gather(count, port, bytes)
    @crowd = Array.new(count) { TCPSocket.new("127.0.0.1", port).tap { |client| client.write(bytes) } }
  end

  def number(server, name)
    control(server, "/metrics").body[/^rondo_#{name}\{[^}]*\} (\d+)$/, 1].to_i
  end

  def answered?(client, pattern)
    client.read_nonblock(100, exception: false).to_s.match?(pattern)
  end
end
