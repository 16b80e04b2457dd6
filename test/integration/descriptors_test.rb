# frozen_string_literal: true

# An application that opens files up to the limit: clients are refused, and the log says why.
# SPDX-License-Identifier: MIT

require_relative "shell_case"

class DescriptorsTest < ShellCase
  LEAK = <<~RUBY
    KEPT = []
    run lambda { |env|
      begin
        KEPT << File.open("/dev/null") while env["PATH_INFO"] == "/leak"
      rescue Errno::EMFILE
        nil
      end
      KEPT.each(&:close).clear if env["PATH_INFO"] == "/close"
      [200, { "content-type" => "text/plain" }, ["hello"]]
    }
  RUBY
  LINE = /^.*no file descriptor.*$/i

  def test_one_line_however_many_are_refused
    write "config.ru", LEAK
    server = start(spawn: { rlimit_nofile: 128 })
    Net::HTTP.start("127.0.0.1", server.port, read_timeout: PATIENCE, keep_alive_timeout: PATIENCE) do |kept|
      assert_equal "200", kept.get("/leak").code
      3.times { assert_equal "503", get(server).code }
      server.wait_for_log(LINE)
      assert_equal "200", kept.get("/close").code
    end
    assert_equal "200", get(server).code
    server.stop
    assert_equal ["No file descriptor is left for new connections: they are answered 503 (the limit is 128 open files; see ulimit -n, LimitNOFILE)"],
                 server.log.scan(LINE)
  end
end
