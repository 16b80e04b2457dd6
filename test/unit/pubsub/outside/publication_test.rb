# frozen_string_literal: true

# What a body of `POST /publish` may be. Nothing is published if one of its messages is refused.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/outside/publication"

class PublicationTest < Minitest::Test
  GOOD = {
    '{"channel":"a","data":"m"}' => [%w[a m]],
    '{"stream":"a","data":"m"}' => [%w[a m]],
    '{"data":"","channel":"a"}' => [["a", ""]],
    '[{"channel":"a","data":"1"},{"stream":"b","data":"2"}]' => [%w[a 1], %w[b 2]],
    '{"channel":"a","data":{"x":[1,null,true]}}' => [["a", '{"x":[1,null,true]}']],
    '{"channel":"a","data":null}' => [%w[a null]],
    '{"channel":"a","data":5}' => [%w[a 5]],
    '{"channel":"a","data":false}' => [%w[a false]],
    "{\"channel\":\"#{"a" * 1024}\",\"data\":\"m\"}" => [["a" * 1024, "m"]],
    '{"channel":"\u00e9","data":"\u2603\u0000"}' => [["é", "☃\0"]],
    " \n[ {\"channel\" : \"a\", \"data\" : \"m\"} ]\n" => [%w[a m]],
    "[#{(['{"channel":"a","data":"m"}'] * 1000).join(",")}]" => [%w[a m]] * 1000
  }.freeze
  BAD = {
    "" => /not JSON/, "{" => /not JSON/, "hello" => /not JSON/, "channel=a&data=m" => /not JSON/, '{"channel":"a","data":NaN}' => /not JSON/,
    "\xff" => /not valid UTF-8/, "{\"channel\":\"a\",\"data\":\"\xff\"}" => /not valid UTF-8/, "1" => /must be an object/, "null" => /must be an object/,
    '"x"' => /must be an object/, "{}" => /must be an object/, "[]" => /a batch has 1 to 1000 messages, not 0/, "[[]]" => /message 1 must be an object/,
    "[#{(["{}"] * 1001).join(",")}]" => /1 to 1000 messages, not 1001/, "#{"[" * 70}#{"]" * 70}" => /more than 64 levels/,
    "#{"[" * 100_000}#{"]" * 100_000}" => /more than 64 levels/, '{"channel":"a"}' => /must be an object/, '{"data":"m"}' => /must be an object/,
    '{"channel":"a","data":"m","meta":{}}' => /nothing else/, '{"channel":"a","stream":"b","data":"m"}' => /nothing else/,
    '{"channel":"","data":"m"}' => /channel of the message must have 1 to 1024 bytes/, '{"stream":1,"data":"m"}' => /stream of the message must be a string/,
    '{"channel":null,"data":"m"}' => /must be a string/, "{\"channel\":\"#{"a" * 1025}\",\"data\":\"m\"}" => /1 to 1024 bytes/,
    "{\"channel\":\"#{"é" * 513}\",\"data\":\"m\"}" => /1 to 1024 bytes/, '{"channel":"a","data":1e999}' => /cannot be sent as JSON/,
    '{"channel":"\ud800","data":"m"}' => /UTF-8|JSON/, '{"channel":"a","data":"\ud800"}' => /UTF-8|JSON/, '{"channel":"a","data":["\ud800"]}' => /JSON|UTF-8/,
    "{\"channel\":\"a\",\"data\":\"#{"m" * 101}\"}" => /longer than 100 bytes/, "{\"channel\":\"a\",\"data\":[\"#{"m" * 100}\"]}" => /longer than 100 bytes/,
    '[{"channel":"a","data":"not this"},{"channel":"a"}]' => /message 2 must be an object/
  }.freeze

  def setup
    @publication = Rondo::Publication.new(longest: 100)
  end

  def test_what_is_published
    GOOD.each do |body, messages|
      parsed = @publication.parse(body.b)
      assert_equal messages, parsed, body[0, 60]
      assert(parsed.flatten.all? { |text| text.encoding == Encoding::UTF_8 })
    end
  end

  def test_what_is_refused
    BAD.each do |body, why|
      error = assert_raises(Rondo::Publication::Refused, body[0, 60]) { @publication.parse(body.b) }
      assert_match why, error.message, body[0, 60]
      status, text = @publication.refusal(400, error.message)
      assert_equal [400, { "error" => error.message }, 1], [status, JSON.parse(text), text.lines.size], body[0, 60]
    end
  end

  def test_reports
    assert_equal [200, "{\"published\":2}\n"], @publication.report([true, 5])
    assert_equal [200, "{\"published\":2,\"messages\":[true,5]}\n"], @publication.report([true, 5], is_detailed: true)
    { [true, false, false] => [503, 1, /no room/], [7, nil, false] => [504, 1, /not known/] }.each do |results, (code, count, why)|
      status, text = @publication.report(results)
      given = JSON.parse(text)
      assert_equal [code, count, results], [status, *given.values_at("published", "messages")]
      assert_match why, given.fetch("error")
    end
    assert_equal [500, "{\"error\":\"why\",\"published\":0}\n"], @publication.report(nil, 500, "why")
  end
end
