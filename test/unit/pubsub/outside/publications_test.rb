# frozen_string_literal: true

# Requests to publish that wait: in turn, with deadlines, with answers of the engine, and with limits. The test is the
# control server: it has the bodies, and takes the answers.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/outside/publications"
require "stringio"
require "timeout"

class PublicationsTest < Minitest::Test
  PATIENCE = 60
  # Seconds of a deadline that the test waits for.
  SHORT = 2
  Publications = Rondo::Publications

  # An engine that takes as many messages as it has room for, and is told when to answer.
  class Engine < Rondo::PubSub::Engine
    attr_reader :taken, :blocks
    attr_accessor :room, :fails, :gate, :raises

    def initialize
      super
      @taken = []
      @blocks = Thread::Queue.new
      @room = 2000
    end

    def publish(channel, message, &block)
      gate&.pop
      raises&.call
      raise "broken" if fails && @taken.size == fails
      return false if @taken.size >= room

      @taken << [channel, message]
      @blocks << block if block
      true
    end
  end

  class Confirming < Engine
    attr_accessor :when_asked

    def confirms? = when_asked.nil? || when_asked.call
  end

  def setup
    @log = StringIO.new
    Rondo::PubSub.log = Rondo::Logger.new(io: @log)
    Rondo::PubSub.default = @engine = Confirming.new
    @bodies = {}
    @answers = Thread::Queue.new
    @publications = publications(PATIENCE)
  end

  def teardown
    @engine.gate&.close
    @all.each(&:close)
    Rondo::PubSub.detach(@engine)
    Rondo::PubSub.log = nil
  end

  def test_requests_are_answered_in_turn
    3.times { |number| ask(number.to_s, number + 1) }
    assert_equal [["0", 200, { "published" => 1 }], ["1", 200, { "published" => 2 }], ["2", 200, { "published" => 3 }]],
                 Array.new(3) { answer }
    assert_equal 6, @engine.taken.size
  end

  def test_what_is_refused_and_what_nobody_waits_for
    @bodies["1"] = "nonsense"
    @publications.add("1", nil)
    assert_equal ["1", 400], answer.first(2)
    @publications.add("2", nil) # it has no body any more
    ask("3", 1)
    assert_equal ["3", 200], answer.first(2)
    assert_equal 1, @engine.taken.size
  end

  def test_without_room_the_answer_says_which_ones_are_published
    @engine.room = 2
    ask("1", 4)
    assert_equal ["1", 503, 2, [true, true, false, false]], short(answer)
    ask("2", 4, 1.0)
    assert_equal ["2", 503, 0, [false] * 4], short(answer)
  end

  def test_an_engine_that_raises
    @engine.fails = 1
    ask("1", 3)
    assert_equal ["1", 503, 1, [true, false, false]], short(answer)
    assert_match(/Confirming#publish: .*broken/, @log.string)
    @engine.fails = nil
    ask("2", 1)
    assert_equal 200, answer[1]
  end

  # What the thread that publishes must outlive.
  [LoadError, NotImplementedError, SystemStackError, NoMemoryError].each do |error|
    define_method("test_an_engine_that_raises_#{error}") do
      @engine.raises = -> { raise error, "on purpose" }
      ask("1", 2)
      assert_equal ["1", 500, 0, [nil, false]], short(answer)
      assert_match(/control server: publish: on purpose \(#{error}\)/, @log.string)
      @engine.raises = nil
      ask("2", 1)
      assert_equal ["2", 200], answer.first(2)
    end
  end

  # These are not the control server's.
  [IOError, Errno::EPIPE].each do |error|
    define_method("test_an_engine_whose_confirms_raises_#{error.name.tr(":", "_")}") do
      @engine.when_asked = -> { raise error, "on purpose" }
      ask("1", 1, 30.0)
      assert_equal ["1", 500, 0, [nil]], short(answer)
      ask("2", 1)
      assert_equal ["2", 200], answer.first(2)
    end
  end

  def test_an_engine_that_ends_the_thread
    hasty = publications(SHORT)
    @engine.raises = -> { Thread.exit }
    ask("1", 1, to: hasty)
    assert_equal ["1", 504, 0, [nil]], short(answer)
    @engine.raises = nil
    ask("2", 1, to: hasty)
    assert_equal ["2", 200], answer.first(2)
  end

  def test_what_was_not_begun_at_the_end_is_not_published
    before = Thread.list
    @engine.gate = Thread::Queue.new
    ask("1", 3, 30.0)
    ask("2", 1)
    Thread.pass until @engine.gate.num_waiting == 1
    @publications.close
    4.times { @engine.gate << true }
    (Thread.list - before).select { |thread| thread.name.to_s.start_with?("rondo publi") }.each { |thread| assert thread.join(PATIENCE) }
    assert_equal 1, @engine.taken.size
    assert_empty @answers
    assert_equal 0, Rondo::PubSub.confirms.instance_variable_get(:@waits).size
  end

  # Of the first one nobody knows, the others are not published later.
  def test_an_engine_that_is_stuck
    @engine.gate = Thread::Queue.new
    hasty = publications(SHORT)
    ask("1", 3, to: hasty)
    ask("2", 2, to: hasty)
    assert_equal ["1", 504, 0, [nil, false, false]], short(answer)
    assert_equal ["2", 504, 0, nil], short(answer)
    2.times { @engine.gate << true }
    @engine.gate = nil
    ask("3", 1, to: hasty)
    assert_equal ["3", 200, 1, nil], short(answer)
    assert_equal 2, @engine.taken.size
  end

  def test_the_engine_answers_all_of_a_batch
    ask("1", 3, 30.0)
    blocks = Array.new(3) { pop(@engine.blocks) }
    ask("2", 1) # waits for nobody
    assert_equal "2", answer.first
    blocks.zip([12, true, 13]).reverse_each { |block, result| block.call(result) }
    assert_equal ["1", 200, { "published" => 3, "messages" => [12, true, 13] }], answer
  end

  def test_the_engine_refuses_one
    ask("1", 2, 30.0)
    [false, 9].each { |result| pop(@engine.blocks).call(result) }
    assert_equal ["1", 503, 1, [false, 9]], short(answer)
  end

  def test_the_engine_does_not_answer_in_time
    ask("1", 3, SHORT)
    blocks = Array.new(3) { pop(@engine.blocks) }
    blocks[1].call(5)
    assert_equal ["1", 504, 1, [nil, 5, nil]], short(answer)
    blocks.each { |block| block.call(7) } # for nobody
    ask("2", 1)
    assert_equal "2", answer.first
    assert_equal 0, Rondo::PubSub.confirms.instance_variable_get(:@waits).size
  end

  def test_an_engine_that_cannot_answer
    Rondo::PubSub.default = other = Engine.new
    ask("1", 2, 30.0)
    id, status, found = answer
    assert_equal ["1", 501, [false, false]], [id, status, found.fetch("messages")]
    assert_match(/cannot say that it has a message/, found.fetch("error"))
    assert_empty other.taken
    ask("2", 2)
    assert_equal 200, answer[1]
  ensure
    Rondo::PubSub.detach(other)
  end

  def test_those_who_wait_for_the_engine_are_limited
    most = Publications::MOST_CONFIRMED
    most.times { |number| ask(number.to_s, 1, 30.0) }
    blocks = Array.new(most) { pop(@engine.blocks) }
    ask("more", 1, 30.0)
    id, status, found = answer
    assert_equal ["more", 503, 0], [id, status, found.fetch("published")]
    assert_match(/32 requests wait for the engine/, found.fetch("error"))
    blocks.shift.call(true)
    assert_equal 200, answer[1]
    ask("again", 1, 30.0)
    [*blocks, pop(@engine.blocks)].each { |block| block.call(true) }
    assert_equal [200] * most, Array.new(most) { answer[1] }
  end

  private

  def publications(seconds)
    Publications.new(Rondo::Publication.new, seconds, log: Rondo::Logger.new(io: @log),
                                                      fetch: ->(id) { @bodies.delete(id.to_s) },
                                                      reply: ->(*words) { @answers << words }).tap { |made| (@all ||= []) << made }
  end

  def ask(id, count, confirm = nil, to: @publications)
    id = (@ids ||= Hash.new { |ids, name| ids[name] = (ids.size + 1).to_s })[id]
    @bodies[id] = JSON.generate(Array.new(count) { |number| { channel: "c", data: number } })
    to.add(id, confirm)
  end

  def answer
    id, status, text = pop(@answers)
    assert_equal 1, text.lines.size
    [(@ids || {}).key(id) || id, status, JSON.parse(text)]
  end

  def short(answer)
    [*answer.first(2), *answer[2].values_at("published", "messages")]
  end

  def pop(queue)
    Timeout.timeout(PATIENCE) { queue.pop }
  end
end
