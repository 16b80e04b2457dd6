# frozen_string_literal: true

# Puma's keys of the env, by a server.
# SPDX-License-Identifier: MIT

require "test_helper"
require "net/http"
require "open3"
require "rondo/puma/env"
require "rondo/puma/module"

class PumaEnvTest < Minitest::Test
  KEYS = %w[rack.after_reply puma.config SERVER_SOFTWARE puma.mark_as_io_bound puma.socket].freeze

  # @return [Net::HTTPResponse]
  def ask(app, **options)
    server = Puma::Server.new(app, nil, max_threads: 1, **options)
    port = server.add_tcp_listener("127.0.0.1", 0).addr[1]
    server.run
    Net::HTTP.get_response(URI("http://127.0.0.1:#{port}/"))
  ensure
    server.stop(true)
  end

  def test_after_reply
    Rondo::PumaLibrary.configuration = nil # of another test
    called = Queue.new
    app = lambda do |env|
      env["rack.after_reply"] << -> { called << 1 }
      env["rack.after_reply"] << -> { raise "no luck" }
      env["rack.after_reply"] << -> { called << 2 }
      [200, {}, [env.slice(*KEYS).values.map(&:class).join(" ")]]
    end
    _, log = capture_io { assert_equal "Array NilClass String Proc Rondo::PumaSocket", ask(Rondo::PumaEnv.new(app)).body }
    assert_match(/RuntimeError: no luck/, log)
    assert_equal [1, 2], Array.new(2) { called.pop }
  end

  def test_addresses_of_the_socket
    kept = nil
    app = lambda do |env|
      kept = socket = env["puma.socket"]
      local, remote = socket.local_address, socket.remote_address
      said = [local.ip_port == env["SERVER_PORT"].to_i, local.ipv6?, socket.addr.drop(2), socket.peeraddr.values_at(0, 2),
              socket.peeraddr[1] == remote.ip_port, remote.ip_address == env["REMOTE_ADDR"], socket.closed?, socket.respond_to?(:to_io)]
      [200, {}, [said.inspect]]
    end
    assert_equal [true, false, %w[127.0.0.1 127.0.0.1], %w[AF_INET 127.0.0.1], true, true, false, true].inspect,
                 ask(Rondo::PumaEnv.new(app)).body
    assert_raises(IOError) { kept.local_address }
    assert_raises(IOError) { kept.write("late") }
    assert_raises(NoMethodError) { kept.nothing }
  end

  # Puma's own test: what is written there is all that the client gets.
  def test_writing_to_the_socket
    app = lambda do |env|
      socket = env["puma.socket"]
      socket.print("HTTP/1.1 299 Own\r\nContent-Length: 3\r\n\r\n")
      socket.write("own")
      socket.close
      [-1, {}, []]
    end
    response = ask(Rondo::PumaEnv.new(app))
    assert_equal %w[299 own], [response.code, response.body]
  end

  # A request inside a request needs a second place.
  def test_a_call_that_only_waits
    app = lambda do |env|
      next [200, {}, ["inner"]] if env["PATH_INFO"] == "/inner"

      env["puma.mark_as_io_bound"].call
      [200, {}, ["outer ", Net::HTTP.get(URI("http://#{env["HTTP_HOST"]}/inner"))]]
    end
    assert_equal "outer inner", ask(Rondo::PumaEnv.new(app), max_io_threads: 1).body
  end

  def test_nothing_without_the_setting
    assert_equal "0", ask(->(env) { [200, {}, [env.slice(*KEYS).size.to_s]] }).body
  end

  # In a process of its own, because this one has loaded Puma.
  def program(text)
    out, status = Open3.capture2e(RbConfig.ruby, "-I#{File.expand_path("../../../lib", __dir__)}", "-e", <<~RUBY)
      require "rondo/config/settings"
      require "rondo/boot/application"
      find = Gem::Specification.method(:find_all_by_name) # does not find a Puma that is installed
      Gem::Specification.define_singleton_method(:find_all_by_name) { |name, *rest| name == "puma" ? [] : find.call(name, *rest) }
      #{text}
      def with(*layers) = Rondo::Application.with_puma_env(-> {}, Rondo::Settings::Resolved.new(*layers)).class
    RUBY
    assert_predicate status, :success?, out
    out.lines.map(&:chomp)
  end

  ASK = "p with({}), with({ puma_env: [true, ''] }), with({ puma_env: [false, ''] })"

  def test_who_has_not_loaded_puma_has_no_keys
    assert_equal %w[Proc Rondo::PumaEnv Proc], program("Rondo::PumaLibrary.offer\nat_exit { #{ASK} }")
  end

  # The application asks for the mark alone, and for no module.
  def test_who_has_threads_for_it_has_the_keys
    assert_equal %w[Rondo::PumaEnv Proc], program("at_exit { p with({ max_io_threads: [1, ''] }), " \
                                                  "with({ max_io_threads: [1, ''], puma_env: [false, ''] }) }")
  end

  def test_who_has_loaded_puma_has_the_keys
    assert_equal %w[Rondo::PumaEnv Rondo::PumaEnv Proc], program("Rondo::PumaLibrary.offer\nPuma::Events\nat_exit { #{ASK} }")
  end
end
