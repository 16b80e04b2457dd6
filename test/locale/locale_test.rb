# frozen_string_literal: true

# What would go wrong if anything followed the locale, and that the locale is in force at all. Runs by
# tools/run_locale alone.
# SPDX-License-Identifier: MIT

require "integration/rack/rack_case"
require "fiddle"
require "stringio"
require "rondo/command/control_client"
require "rondo/process/control"

class LocaleTest < RackCase
  INT = Fiddle::TYPE_INT
  POINTER = Fiddle::TYPE_VOIDP

  def libc(name, *types, returns: INT)
    Fiddle::Function.new(Fiddle.dlopen(nil)[name], types, returns)
  end

  def test_the_locale_is_in_force
    refute_equal "I".ord, libc("toupper", INT).call("i".ord)
    refute_equal 0, libc("strcasecmp", POINTER, POINTER).call("CONTENT-TYPE-ID", "content-type-id")
    point = libc("localeconv", returns: POINTER).call.ptr
    assert_equal ",", point.to_s
  end

  NAMES = %w[Authorization X-Client-Id Connection If-None-Match X-Api-Id Iii-Iii xiiiiiii].freeze

  def test_keys_of_the_env
    keys = nil
    client = serve do |env|
      keys = env.keys.grep(/\AHTTP_/)
      [200, {}, []]
    end
    %i[itself upcase downcase].each do |letters|
      get(client, "/", NAMES.to_h { |name| [name.public_send(letters), "keep-alive"] })
      assert_equal ["HTTP_HOST", *NAMES.map { |name| "HTTP_#{name.upcase.tr("-", "_")}" }].sort, keys.sort
    end
  end

  # Fields that the server decides itself, however the application spells them.
  def test_fields_of_the_response
    fields = { "TRANSFER-ENCODING" => "identity", "CONTENT-LENGTH" => "2", "CONNECTION" => "close" }
    client = serve(lint: false) { [200, fields, ["ok"]] }
    answer = get(client)
    assert_equal "ok", answer.body
    assert_equal [nil, "2", "close"], %w[transfer-encoding content-length connection].map { |name| answer.header(name) }
  end

  def test_times_of_the_request_log
    { common: %r{\A127\.0\.0\.1 - - \[\d\d/(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)/\d{4}:.{14}\] "GET / HTTP/1\.1" 200 0 0\.\d{6}\n\z},
      json: /\A\{"time":"[-\dT:+]{24}".*"duration_us":\d+\}\n\z/ }.each do |format, line|
      output = StringIO.new
      get(serve(request_log: output, request_log_format: format) { [200, {}, []] })
      eventually("the request is logged") { !output.string.empty? }
      assert_match line, output.string
    end
  end

  def test_numbers_of_the_metrics
    board = Rondo::Scoreboard.new(1)
    board.set(0, :state, 2)
    board.row(0).each_key { |name| board.set(0, name, 1_234_567) unless name == :state }
    control = Rondo::Control.new(board, Object.new, cluster: true)
    url = control.listen("unix://@rondo-locale-test-#{Process.pid}")
    control.start
    metrics, stats = %w[/metrics /stats].map { |path| Rondo::ControlClient.new(url).get(path).body }
    assert_match(/ \d+\.\d+$/, metrics)
    refute_match(/\d,\d/, metrics)
    assert_equal 1, JSON.parse(stats)["workers"]
  ensure
    control&.close
  end
end
