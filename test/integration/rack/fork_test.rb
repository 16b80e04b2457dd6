# frozen_string_literal: true

# Applications that fork: the child has copies of the server's objects, but the poller and the
# sockets are the parent's. It must not answer, and its end must not take anything from the parent.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/server_process"
require "tmpdir"
require "net/http"

class ForkTest < Minitest::Test
  APP = <<~RUBY
    run lambda { |env|
      case env["PATH_INFO"]
      when "/block" then Process.wait(fork { 1 })
      when "/raise" then Process.wait(fork { $stderr.reopen(File::NULL); raise "in the child" })
      when "/return"
        pid = fork or next [200, {}, ["child"]]
        Process.wait(pid)
      end
      [200, { "content-type" => "text/plain" }, ["parent"]]
    }
  RUBY

  def test_the_parent_goes_on
    Dir.mktmpdir do |folder|
      app = File.join(folder, "fork.ru")
      File.write(app, APP)
      ServerProcess.run(app) { |server| ask_all(server) }
    end
  end

  private

  # The same kept-alive connection throughout: the child's end must not unregister it.
  def ask_all(server)
    Net::HTTP.start("127.0.0.1", server.port) do |http|
      %w[/block / /raise / /return / /return /].each do |path|
        assert_equal "parent", http.get(path).body, path
      end
    end
    assert_equal "parent", Net::HTTP.get("127.0.0.1", "/", server.port)
  end
end
