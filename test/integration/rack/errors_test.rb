# frozen_string_literal: true

# Exceptions of the application: a line with the backtrace in the log, a 500 for the client, a page
# that shows the backtrace in development only, and lowlevel_error_handler.
# SPDX-License-Identifier: MIT

require_relative "rack_case"

class RackErrorsTest < RackCase
  # An exception that StandardError does not cover.
  class Unusual < Exception; end # rubocop:disable Lint/InheritException

  def raising(error = RuntimeError.new("secret reason"), **options)
    serve(lint: false, **options) { |env| env["PATH_INFO"] == "/fine" ? [200, {}, ["fine"]] : raise(error) }
  end

  def test_the_client_gets_a_plain_500
    response = get(raising)
    assert_equal 500, response.status
    refute_includes response.body, "secret"
    refute_match(/\.rb/, response.body)
    refute_match(/rondo|backtrace/i, response.body)
  end

  def test_the_log_gets_the_backtrace
    get(raising, "/some/path")
    assert_match(/error: /, log)
    assert_match(/RuntimeError: secret reason/, log)
    assert_match(/errors_test\.rb:\d+/, log)
    assert_match(%r{GET /some/path}, log)
  end

  def test_the_connection_and_the_server_live_on
    client = raising
    3.times { assert_equal [500, 200], [get(client).status, get(client, "/fine").status] }
  end

  def test_pipelined_requests_are_answered_in_order
    client = raising
    client.write(bytes("GET", "/fine") + bytes("GET", "/") + bytes("GET", "/fine"))
    assert_equal([200, 500, 200], Array.new(3) { client.response.status })
  end

  def test_a_page_with_the_backtrace_in_development
    response = get(raising(environment: "development"), "/", "Accept" => "text/html")
    assert_equal 500, response.status
    assert_includes response.body, "secret reason"
    assert_includes response.body, "errors_test.rb"
  end

  def test_the_page_escapes_what_it_shows
    client = raising(RuntimeError.new("<script>alert(1)</script>"), environment: "development")
    response = get(client, "/<script>".gsub(/[<>]/) { |c| format("%%%02X", c.ord) }, "Accept" => "text/html")
    refute_includes response.body, "<script>alert(1)" if response.header("content-type").include?("html")
  end

  def test_the_page_of_an_error_without_backtrace_or_with_odd_bytes
    odd = RuntimeError.new("odd \xFF\xFE bytes")
    odd.set_backtrace([])
    assert_equal 500, get(raising(odd, environment: "development")).status
    assert_equal 500, get(raising(odd)).status
  end

  def test_an_error_whose_message_raises
    error = Class.new(StandardError) { def message = raise("in message") }.new
    %w[development production].each do |environment|
      client = raising(error, environment: environment)
      assert_equal 500, get(client).status
      assert_match(/RuntimeError: in message/, log)
      assert_equal 200, get(client, "/fine").status
    end
  end

  [NotImplementedError.new("x"), LoadError.new("x"), Unusual.new("x"), NoMemoryError.new("x"),
   StopIteration.new("x"), SystemStackError.new("x"), SecurityError.new("x")].each do |error|
    define_method("test_#{error.class.name.tr(":", "_")}_is_answered") do
      client = raising(error)
      assert_equal 500, get(client).status
      assert_includes log, error.class.name
      assert_equal 200, get(client, "/fine").status
    end
  end

  def test_recursion_without_end
    client = serve(lint: false) do |env|
      recurse = ->(n) { recurse.call(n + 1) + 1 }
      env["PATH_INFO"] == "/fine" ? [200, {}, []] : recurse.call(0)
    end
    assert_equal 500, get(client).status
    assert_equal 200, get(client, "/fine").status
  end

  def test_throw_and_exit_do_not_end_the_server
    client = serve(lint: false) do |env|
      case env["PATH_INFO"]
      when "/throw" then throw :nobody_catches
      when "/exit" then exit
      when "/abort" then abort
      when "/fine" then [200, {}, []]
      end
    end
    %w[/throw /exit /abort].each { |path| assert_equal 500, get(client, path).status }
    assert_equal 200, get(client, "/fine").status
  end

  def test_an_error_after_reading_half_of_the_body
    client = serve(lint: false) do |env|
      env["rack.input"].read(3)
      raise "half"
    end
    client.write(bytes("POST", "/", {}, "x" * 300_000) * 2)
    2.times { assert_equal 500, client.response.status }
  end

  def test_lowlevel_error_handler
    seen = Queue.new
    handler = lambda do |error, env, status|
      seen << [error.message, env["PATH_INFO"], status]
      [503, { "x-handled" => "yes" }, ["handled"]]
    end
    response = get(raising(lowlevel_error_handler: handler), "/path")
    assert_equal [503, "yes", "handled"], [response.status, response.header("x-handled"), response.body]
    assert_equal ["secret reason", "/path", 500], take(seen)
  end

  def test_lowlevel_error_handlers_that_want_less
    response = get(raising(lowlevel_error_handler: ->(error) { [500, {}, [error.message.upcase]] }))
    assert_equal "SECRET REASON", response.body
    response = get(raising(lowlevel_error_handler: ->(_error, env) { [500, {}, [env["PATH_INFO"]]] }), "/p")
    assert_equal "/p", response.body
  end

  def test_a_lowlevel_error_handler_that_raises_or_answers_nonsense
    { ->(*) { raise "again" } => /RuntimeError: again\n +\S*errors_test\.rb:\d+/,
      ->(*) { nil } => /ResponseError: the application did not return/,
      ->(*) { [500, { "x" => "\n" }, []] } => /ResponseError: a header value/,
      ->(*) { throw :nobody_catches } => /UncaughtThrowError: / }.each do |handler, line|
      client = raising(lowlevel_error_handler: handler)
      assert_equal 500, get(client).status
      assert_match(%r{GET /: RuntimeError: secret reason}, log)
      assert_match(%r{GET /: .*#{line}}, log)
      assert_equal 200, get(client, "/fine").status
    end
  end

  def test_an_answer_to_an_error_that_breaks_off
    body = Body.new do |part|
      part.call("begun")
      raise "in the middle"
    end
    client = raising(lowlevel_error_handler: ->(*) { [500, { "content-type" => "text/plain" }, body] })
    client.write(bytes("GET", "/"))
    client.read_all
    assert_match(%r{GET /: RuntimeError: in the middle}, log)
  end
end
