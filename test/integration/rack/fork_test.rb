# frozen_string_literal: true

# Applications that fork: the child has copies of the server's objects, but the poller and the
# sockets are the parent's. It must not answer, and its end must not take anything from the parent.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/server_process"
require "tmpdir"
require "net/http"

class ForkTest < Minitest::Test
  # What a child does on its way out is the parent's to send, or nobody's.
  APP = <<~RUBY
    STREAM = lambda do |stream|
      stream.write("one;")
      pid = fork or exit
      Process.wait(pid)
      stream.write("two;")
    ensure
      stream.write("last") rescue nil
      stream.close
    end

    class EACH
      def each
        yield "one;"
        pid = fork or exit
        Process.wait(pid)
        yield "two;"
      ensure
        yield "last"
      end
    end

    class BOTH
      def each
        yield "one;"
        pid = fork or return
        Process.wait(pid)
        yield "two"
      end
    end

    # The child has the stack of a thread that it has not.
    class THREAD
      def each(&block)
        yield "one;"
        status = Thread.new { Process.wait2(fork { child(block) }).last }.value
        yield status.success? ? "two" : "the child: \#{status.inspect}"
      end

      def child(block)
        Array.new(20) { Thread.new { sleep 0.001 } }.each(&:join)
        block.call("from the child")
        exit!(1)
      rescue IOError
        exit!(0)
      end
    end

    run lambda { |env|
      case env["PATH_INFO"]
      when "/block" then Process.wait(fork { 1 })
      when "/raise" then Process.wait(fork { $stderr.reopen(File::NULL); raise "in the child" })
      when "/return"
        pid = fork or next [200, {}, ["child"]]
        Process.wait(pid)
      when "/stream" then next [200, {}, STREAM]
      when "/each" then next [200, {}, EACH.new]
      when "/both" then next [200, {}, BOTH.new]
      when "/thread" then next [200, {}, THREAD.new]
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
      %w[/stream /each /stream /each].each { |path| assert_equal "one;two;last", http.get(path).body, path }
      %w[/both /thread /both /thread].each { |path| assert_equal "one;two", http.get(path).body, path }
    end
    assert_equal "parent", Net::HTTP.get("127.0.0.1", "/", server.port)
  end
end
