# frozen_string_literal: true

# Names of machines while no server for names answers: whoever asks waits for as long as there is time, and nothing is
# asked twice at once.
# SPDX-License-Identifier: MIT

require "test_helper"
require "minitest/mock"
require "rondo"
require "rondo/pubsub/nats"
require "rondo/pubsub/nats/stream"
require "rondo/pubsub/queued/lookup"

class LookupTest < Minitest::Test
  Lookup = Rondo::PubSub::Queued::Lookup
  FOUND = [Addrinfo.tcp("127.0.0.1", 1)].freeze
  FOREVER = 3600 # a wait that is not cut short never ends

  def setup
    @asked = []
    @answers = Thread::Queue.new
    @name = "#{SecureRandom.hex(4)}.test" # of this test alone
  end

  def teardown
    @answers.close
  end

  def test_an_address_costs_no_thread
    none = ->(*) { flunk "a thread for an address" }
    Thread.stub(:new, none) do
      %w[127.0.0.1 ::1].each { |host| assert_equal [[host, 80]], Lookup.addresses(host, 80, 0).map { |each| [each.ip_address, each.ip_port] } }
    end
  end

  def test_a_lookup_that_is_still_running_is_waited_for
    with_resolver do
      3.times { assert_match(/\Ano answer within 0 s to the question for the address of #{@name}\z/, assert_raises(SocketError) { find(0) }.message) }
      @answers << FOUND
      assert_equal FOUND, find(FOREVER)
      assert_equal [@name], @asked
      @answers << FOUND
      assert_equal FOUND, find(FOREVER)
      assert_equal [@name] * 2, @asked, "an answer is used once"
    end
  end

  def test_an_answer_that_came_too_late_is_for_the_next_attempt
    with_resolver do
      assert_raises(SocketError) { find(0) }
      @answers << SocketError.new("no such machine")
      Thread.pass while thread.alive?
      assert_equal "no such machine", assert_raises(SocketError) { find(0) }.message
      assert_equal [@name], @asked
    end
  end

  def test_what_is_old_is_asked_again
    with_resolver do
      assert_raises(SocketError) { find(0) }
      lookup = lookups[[@name, 1]]
      @answers << [] << FOUND
      Thread.pass while thread.alive?
      lookup.instance_variable_set(:@answered_at, -FOREVER)
      assert_equal FOUND, find(FOREVER)
    end
  end

  # A fork has ended the thread.
  def test_a_lookup_without_an_answer_is_asked_again
    with_resolver do
      assert_raises(SocketError) { find(0) }
      Thread.pass while @asked.empty?
      thread.kill.join
      @answers << FOUND
      assert_equal FOUND, find(FOREVER)
      assert_equal 2, @asked.size
    end
  end

  # Its deadline is that of the connection.
  def test_a_link_does_not_wait_for_longer
    with_resolver do
      error = assert_raises(Rondo::PubSub::Nats::Link::Broken) do
        terms = { tls: nil, timeout: 0.2, ping: 60, bytes_max: 1 << 20, on_refusal: nil }
        Rondo::PubSub::Nats::Link.new(URI("nats://#{@name}:1"), Rondo::PubSub::Nats::Credentials.new({}), **terms)
      end
      assert_equal "no answer within 0.2 s to the question for the address of #{@name}", error.message
    end
  end

  private

  def find(seconds)
    Lookup.addresses(@name, 1, seconds)
  end

  def lookups
    Lookup.instance_variable_get(:@all)
  end

  def thread
    lookups[[@name, 1]].instance_variable_get(:@thread)
  end

  # The system answers when the test says so.
  def with_resolver(&)
    system = lambda do |host, _port, _family, _type, _protocol = nil, flags = 0|
      raise SocketError, "a name" if flags == Socket::AI_NUMERICHOST

      @asked << host
      answer = @answers.pop
      answer.is_a?(Exception) ? raise(answer) : answer
    end
    Addrinfo.stub(:getaddrinfo, system, &)
  end
end
