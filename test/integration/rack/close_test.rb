# frozen_string_literal: true

# The body that the application returns is closed exactly once, and then rack.response_finished
# runs once, on every way a request can end.
# SPDX-License-Identifier: MIT

require_relative "rack_case"

class RackCloseTest < RackCase
  # `answer` makes the answer of the application, `client` names what the client does.
  Way = Struct.new(:verb, :headers, :settings, :client, :answer, keyword_init: true)

  class << self
    # @yield [env, order] returns the response, whose body is to be closed
    def way(name, method: "GET", headers: {}, client: :reads, **settings, &answer)
      one = Way.new(verb: method, headers: headers, settings: settings, client: client, answer: answer)
      define_method("test_#{name.gsub(/\W+/, "_")}") { check(one) }
    end
  end

  UPGRADE = { "Upgrade" => "websocket", "Connection" => "Upgrade", "Sec-WebSocket-Version" => "13",
              "Sec-WebSocket-Key" => "dGhlIHNhbXBsZSBub25jZQ==" }.freeze

  # A handler without callbacks.
  module Deaf; end

  # With a file name as well.
  class NamedBody < Body
    def to_path
      __FILE__
    end
  end

  # A body that is called with a stream.
  class Streamed < Body
    undef_method :each

    def initialize(log:, &call)
      super(log: log)
      @call = call
    end

    def call(stream)
      @call.call(stream)
    end
  end

  # A streaming body that also has its parts in an Array.
  class Listed < Body
    def to_ary
      @parts
    end
  end

  def self.endless(order)
    Body.new(log: order) { |out| loop { out.call("x" * 5000) } }
  end

  # ---- what is sent ----

  way("enumerated") { |_env, order| [200, {}, Body.new("one", "two", log: order)] }
  way("to_ary") { |_env, order| [200, {}, Listed.new("one", "two", log: order)] }
  way("HEAD", method: "HEAD") { |_env, order| [200, {}, Body.new("one", log: order)] }
  way("204") { |_env, order| [204, {}, Body.new(log: order)] }
  way("304") { |_env, order| [304, {}, Body.new(log: order)] }
  way("a file by its path") { |_env, order| [200, {}, NamedBody.new(log: order)] }
  way("a file that is not asked for", method: "HEAD") { |_env, order| [200, {}, NamedBody.new(log: order)] }
  way("longer than promised") { |_env, order| [200, { "content-length" => "2" }, Body.new("one", log: order)] }
  way("shorter than promised") { |_env, order| [200, { "content-length" => "9" }, Body.new("one", log: order)] }
  way("a stream") { |_env, order| [200, {}, Streamed.new(log: order, &:close)] }
  way("a stream that its body leaves open") do |_env, order|
    [200, {}, Streamed.new(log: order) { |stream| Thread.new { order.wait(:close) && stream.close } }]
  end
  way("a file by X-Sendfile", x_sendfile_roots: [__dir__], sendfile_type: "X-Sendfile") do |_env, order|
    [200, { "x-sendfile" => __FILE__ }, Body.new(log: order)]
  end
  way("no file by X-Sendfile", x_sendfile_roots: [__dir__], sendfile_type: "X-Sendfile") do |_env, order|
    [200, { "x-sendfile" => File.join(__dir__, "none") }, Body.new(log: order)]
  end
  way("a file outside of the roots", x_sendfile_roots: [__dir__], sendfile_type: "X-Sendfile") do |_env, order|
    [200, { "x-sendfile" => "/etc/hostname" }, Body.new(log: order)]
  end

  # ---- connections that the application takes over ----

  [-1, 200, 101, 999].each do |status|
    way("full hijack, status #{status}") do |env, order|
      env["rack.hijack"].call.close
      [status, {}, Body.new("ignored", log: order)]
    end
  end
  way("full hijack that another thread ends") do |env, order|
    io = env["rack.hijack"].call
    Thread.new { order.wait(:finished) && io.close }
    [-1, {}, Body.new(log: order)]
  end
  way("full hijack with nonsense for a response") do |env, order|
    env["rack.hijack"].call.close
    ["no status", Object.new, Body.new(log: order)]
  end
  way("full hijack with a stream for a body") do |env, order|
    env["rack.hijack"].call.close
    [200, {}, Streamed.new(log: order) { raise "it is not called" }]
  end
  way("partial hijack") do |_env, order|
    [200, { "rack.hijack" => ->(io) { io.close } }, Body.new(log: order)]
  end
  way("partial hijack that raises") do |_env, order|
    hijack = lambda do |io|
      io.close
      raise "in the hijack"
    end
    [200, { "rack.hijack" => hijack }, Body.new(log: order)]
  end
  way("101 with a body that is called") do |_env, order|
    [101, { "upgrade" => "other" }, Streamed.new(log: order, &:close)]
  end
  way("rack.upgrade", headers: UPGRADE) do |env, order|
    env["rack.upgrade"] = Deaf
    [200, {}, Body.new(log: order)]
  end
  way("rack.upgrade that cannot be") do |env, order|
    env["rack.upgrade"] = Deaf
    [200, {}, Body.new(log: order)]
  end
  way("rack.upgrade of a stranger", headers: { **UPGRADE, "Origin" => "http://stranger.example" },
                                    allowed_origins: ["http://friend.example"]) do |env, order|
    env["rack.upgrade"] = Deaf
    [200, {}, Body.new(log: order)]
  end
  way("rack.upgrade with a field that is refused", headers: UPGRADE) do |env, order|
    env["rack.upgrade"] = Deaf
    [200, { "x" => "\r\n" }, Body.new(log: order)]
  end

  # ---- what goes wrong ----

  way("a status that is none") { |_env, order| ["none", {}, Body.new(log: order)] }
  way("a status out of range") { |_env, order| [1000, {}, Body.new(log: order)] }
  way("a field that is refused") { |_env, order| [200, { "x" => "\r\n" }, Body.new(log: order)] }
  way("fields that raise") { |_env, order| [200, Body.new { raise "in the fields" }, Body.new(log: order)] }
  way("each raises") { |_env, order| [200, {}, Body.new(log: order) { raise "in each" }] }
  way("each raises at its second part") do |_env, order|
    each = lambda do |out|
      out.call("one")
      raise "in each"
    end
    [200, {}, Body.new(log: order, &each)]
  end
  way("a part that is no String") { |_env, order| [200, {}, Body.new("one", 2, log: order)] }
  way("to_path raises") do |_env, order|
    body = NamedBody.new(log: order)
    def body.to_path = raise("in to_path")
    [200, {}, body]
  end
  way("to_ary raises") do |_env, order|
    body = Body.new(log: order)
    def body.to_ary = raise("in to_ary")
    [200, {}, body]
  end
  way("call raises") { |_env, order| [200, {}, Streamed.new(log: order) { raise "in call" }] }
  way("neither each nor call") do |_env, order|
    body = Body.new(log: order)
    body.singleton_class.undef_method(:each)
    [200, {}, body]
  end
  way("throw") { |_env, order| [200, {}, Body.new(log: order) { throw :nowhere }] }
  way("exit") { |_env, order| [200, {}, Body.new(log: order) { exit }] }
  way("an error that is no StandardError") { |_env, order| [200, {}, Body.new(log: order) { raise NotImplementedError }] }
  way("Thread#kill") { |_env, order| [200, {}, Body.new(log: order) { Thread.current.kill }] }
  way("Thread#kill at the second part") do |_env, order|
    each = lambda do |out|
      out.call("one")
      Thread.current.kill
    end
    [200, {}, Body.new(log: order, &each)]
  end
  way("Thread#kill in a stream") { |_env, order| [200, {}, Streamed.new(log: order) { Thread.current.kill }] }
  way("Thread#kill after a hijack") do |env, order|
    env["rack.hijack"].call.close
    body = Body.new(log: order)
    body.define_singleton_method(:close) { super() && Thread.current.kill }
    [-1, {}, body]
  end
  way("close raises") do |_env, order|
    body = Body.new("one", log: order)
    body.define_singleton_method(:close) { super() && raise("in close") }
    [200, {}, body]
  end
  way("close raises after a hijack") do |env, order|
    env["rack.hijack"].call.close
    body = Body.new(log: order)
    body.define_singleton_method(:close) { super() && raise("in close") }
    [-1, {}, body]
  end
  way("an answer to an error that is refused", lowlevel_error_handler: lambda { |_error, env|
    [500, { "x" => "\r\n" }, Body.new(log: env["test.order"])]
  }) do |env, order|
    env["test.order"] = order
    raise "in the application"
  end
  way("an answer to an error that raises", lowlevel_error_handler: lambda { |_error, env|
    [500, {}, Body.new("one", log: env["test.order"]) { |out| out.call("one") && raise("in each") }]
  }) do |env, order|
    env["test.order"] = order
    raise "in the application"
  end

  # ---- clients that leave ----

  way("the client leaves before the answer", client: :leaves) do |_env, order|
    order.wait(:left)
    [200, {}, endless(order)]
  end
  way("the client leaves in the middle", client: :leaves_in_the_middle) { |_env, order| [200, {}, endless(order)] }
  way("the client leaves a stream", client: :leaves_in_the_middle) do |_env, order|
    [200, {}, Streamed.new(log: order) { |stream| loop { stream.write("x" * 5000) } }]
  end
  way("the client leaves before a hijack", client: :leaves) do |env, order|
    order.wait(:left)
    begin
      env["rack.hijack"].call.close
    rescue IOError
      nil
    end
    [-1, {}, Body.new(log: order)]
  end
  way("the client leaves before a partial hijack", client: :leaves) do |_env, order|
    order.wait(:left)
    [200, { "rack.hijack" => ->(io) { io.close } }, Body.new(log: order)]
  end
  way("the client leaves before an upgrade", headers: UPGRADE, client: :leaves) do |env, order|
    order.wait(:left)
    env["rack.upgrade"] = Deaf
    [200, {}, Body.new(log: order)]
  end
  way("the server is stopped", client: :stops) { |_env, order| [200, {}, endless(order)] }

  private

  # The events of a request, in order.
  class Order
    def initialize
      @events = []
      @mutex = Mutex.new
      @changed = ConditionVariable.new
    end

    def <<(event)
      @mutex.synchronize do
        @events << event
        @changed.broadcast
      end
      self
    end

    def wait(event)
      @mutex.synchronize { @changed.wait(@mutex, RackCase::PATIENCE) until @events.include?(event) }
      true
    end

    def to_a
      @mutex.synchronize { @events.dup }
    end
  end

  # The next request on the same thread comes after everything of this one. A second call of close would have happened
  # by then.
  def check(way)
    order = Order.new
    client = serve(lint: false, max_threads: 1, **way.settings) do |env|
      next [200, {}, ["after"]] if env["PATH_INFO"] == "/after"
      env["rack.response_finished"] << ->(*) { order << :finished }
      order << :begun
      way.answer.call(env, order)
    end
    send(way.client, client, order, way)
    eventually("the request ends: #{order.to_a}") { order.to_a.include?(:finished) }
    assert_equal "after", get(connect, "/after").body unless way.client == :stops
    assert_equal %i[close finished], order.to_a - %i[begun left], log
  end

  def ask(client, way)
    client.write(bytes(way.verb, "/", way.headers))
  end

  def reads(client, _order, way)
    ask(client, way)
  end

  def leaves(client, order, way)
    ask(client, way)
    order.wait(:begun)
    client.reset
    order << :left
  end

  def leaves_in_the_middle(client, _order, way)
    ask(client, way)
    client.read_some
    client.reset
  end

  def stops(client, _order, way)
    ask(client, way)
    client.read_some
    @running.last.server.stop(force: true)
  end
end
