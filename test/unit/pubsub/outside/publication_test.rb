# frozen_string_literal: true

# What a body of `POST /publish` may be. Nothing is published if one of its messages is refused.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/outside/publication"
require "stringio"

class PublicationTest < Minitest::Test
  # An engine that takes as many messages as it has room for.
  class Engine < Rondo::PubSub::Engine
    attr_reader :taken
    attr_accessor :room, :fails

    def initialize
      super
      @taken = []
      @room = 2000
    end

    def publish(channel, message)
      raise "broken" if fails && @taken.size == fails
      return false if @taken.size >= room

      @taken << [channel, message]
      true
    end
  end

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
    @log = StringIO.new
    Rondo::PubSub.log = Rondo::Logger.new(io: @log)
    Rondo::PubSub.default = @engine = Engine.new
    @publication = Rondo::Publication.new(Rondo::Logger.new(io: @log), longest: 100)
  end

  def teardown
    Rondo::PubSub.detach(@engine)
    Rondo::PubSub.log = nil
  end

  def test_what_is_published
    GOOD.each do |body, messages|
      @engine.taken.clear
      assert_equal [200, "{\"published\":#{messages.size}}\n"], @publication.answer(body.b), body[0, 60]
      assert_equal messages, @engine.taken
      assert(@engine.taken.flatten.all? { |text| text.encoding == Encoding::UTF_8 })
    end
  end

  def test_what_is_refused
    BAD.each do |body, why|
      status, text = @publication.answer(body.b)
      assert_equal [400, 1], [status, text.lines.size], body[0, 60]
      assert_match why, JSON.parse(text).fetch("error"), body[0, 60]
    end
    assert_empty @engine.taken
  end

  def test_without_room_the_answer_says_how_many_are_published
    @engine.room = 2
    status, text = @publication.answer("[#{(['{"channel":"a","data":"m"}'] * 5).join(",")}]")
    assert_equal [503, 2, 2], [status, JSON.parse(text).fetch("published"), @engine.taken.size]
    assert_match(/no room/, text)
  end

  def test_an_engine_that_raises
    @engine.fails = 1
    status, text = @publication.answer("[#{(['{"channel":"a","data":"m"}'] * 3).join(",")}]")
    assert_equal [503, 1], [status, JSON.parse(text).fetch("published")]
    assert_match(/Engine#publish: .*broken/, @log.string)
  end
end
