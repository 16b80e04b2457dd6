# frozen_string_literal: true

# rack.response_finished: in reverse order, with the right arguments, on every way a response ends.
# SPDX-License-Identifier: MIT

require_relative "rack_case"

class RackFinishTest < RackCase
  # The arguments with which the callables of a request were called when its response ended.
  def finishing(order = Queue.new, **options)
    client = serve(lint: false, **options) do |env|
      2.times { |n| env["rack.response_finished"] << ->(*arguments) { order << [n, *arguments] } }
      yield env
    end
    [client, order]
  end

  def assert_finished(order, status:, error: nil)
    calls = Array.new(2) { take(order, "the response is finished") }
    assert_equal [1, 0], calls.map(&:first)
    calls.each do |_, env, got_status, headers, got_error|
      assert_kind_of Hash, env
      status ? assert_equal(status, got_status) : assert_nil(got_status)
      status ? assert_kind_of(Hash, headers) : assert_nil(headers)
      error ? assert_kind_of(error, got_error) : assert_nil(got_error)
    end
    assert_empty order
  end

  def test_after_a_response
    client, order = finishing { |_env| [201, { "x-one" => "1" }, ["text"]] }
    assert_equal 201, get(client).status
    assert_finished(order, status: 201)
  end

  def test_it_gets_the_env_and_the_headers_of_the_response
    order = Queue.new
    given = nil
    headers = { "x-one" => "1" }
    client = serve(lint: false) do |env|
      given = env
      env["rack.response_finished"] << ->(*arguments) { order << arguments }
      [200, headers, []]
    end
    get(client)
    env, status, got, error = take(order)
    assert_same given, env
    assert_equal [200, headers, nil], [status, got, error]
  end

  def test_behind_lint
    order = Queue.new
    client = serve do |env|
      env["rack.response_finished"] << ->(*arguments) { order << arguments }
      [200, {}, ["text"]]
    end
    get(client)
    assert_equal 200, take(order)[1]
  end

  def test_after_the_body_was_closed
    order = Queue.new
    client = serve(lint: false) do |env|
      env["rack.response_finished"] << ->(*) { order << :finished }
      [200, {}, Body.new("text", log: order)]
    end
    get(client)
    assert_equal(%i[close finished], Array.new(2) { take(order) })
  end

  { "HEAD" => 200, "PUT" => 204, "POST" => 304 }.each do |method, status|
    define_method("test_after_#{method}_#{status}") do
      client, order = finishing { |_env| [status, {}, []] }
      client.request(bytes(method, "/"), head: method == "HEAD")
      assert_finished(order, status: status)
    end
  end

  def test_after_a_file
    client, order = finishing { |_env| [200, {}, File.open(__FILE__)] }
    assert_equal File.binread(__FILE__), get(client).body
    assert_finished(order, status: 200)
  end

  def test_after_an_exception_of_the_application
    client, order = finishing { |_env| raise IndexError, "in the application" }
    assert_equal 500, get(client).status
    calls = Array.new(2) { take(order) }
    assert_equal [1, 0], calls.map(&:first)
    calls.each { |call| assert_kind_of IndexError, call.last }
  end

  def test_after_a_body_that_raised
    client, order = finishing { |_env| [200, {}, Body.new { raise IndexError, "in the body" }] }
    client.write(bytes("GET", "/"))
    client.read_all
    assert_finished(order, status: 200, error: IndexError)
  end

  def test_after_the_client_left
    client, order = finishing { |_env| [200, {}, Body.new { |out| loop { out.call("x" * 5000) } }] }
    client.write(bytes("GET", "/"))
    client.read_some
    client.reset
    calls = Array.new(2) { take(order) }
    assert_equal [1, 0], calls.map(&:first)
    assert_equal [200, 200], (calls.map { |call| call[2] })
  end

  def test_after_a_refused_response
    client, order = finishing { |_env| [200, { "x" => "\r\n" }, []] }
    assert_equal 500, get(client).status
    calls = Array.new(2) { take(order) }
    calls.each { |call| assert_kind_of Rondo::Error, call.last }
  end

  def test_one_that_raises_does_not_stop_the_others
    order = Queue.new
    client = serve(lint: false) do |env|
      env["rack.response_finished"] << ->(*) { order << :first }
      env["rack.response_finished"] << ->(*) { raise "in a callback" }
      env["rack.response_finished"] << ->(*) { order << :last }
      [200, {}, ["text"]]
    end
    assert_equal "text", get(client).body
    assert_equal(%i[last first], Array.new(2) { take(order) })
    eventually("it is logged") { log.include?("in a callback") }
    assert_equal "text", get(client).body
  end

  def test_each_request_has_its_own_list
    order = Queue.new
    client = serve(lint: false) do |env|
      size = env["rack.response_finished"].size
      path = env["PATH_INFO"]
      env["rack.response_finished"] << ->(*) { order << path } unless path == "/none"
      [200, {}, [size.to_s]]
    end
    %w[/1 /none /2 /3].each { |path| assert_equal "0", get(client, path).body }
    client.write(%w[/4 /none /5].map { |path| bytes("GET", path) }.join)
    3.times { assert_equal "0", client.response.body }
    assert_equal(%w[/1 /2 /3 /4 /5], Array.new(5) { take(order) })
  end
end
