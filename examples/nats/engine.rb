# frozen_string_literal: true

# An engine for NATS (gem nats-pure), which shows that three methods are enough. Messages go to the subject
# rondo.CHANNEL, in hexadecimal, because a channel may have any bytes. The patterns of NATS differ from those of
# channels. So this engine listens to all channels while there is any subscriber, and the server chooses. All work is
# done on a thread of its own, so that no caller waits for NATS.
# SPDX-License-Identifier: MIT

require "nats/client"
require "rondo"

# Rondo::PubSub.default = NatsEngine.new("nats://127.0.0.1:4222")
class NatsEngine < Rondo::PubSub::Engine
  PREFIX = "rondo."

  def initialize(url, queue: 10_000)
    super()
    @url = url
    @limit = queue
    @interests = 0
    @orders = Thread::Queue.new
    @thread = Thread.new { work }
  end

  # The first subscriber of a channel.
  def subscribe(_channel, _is_pattern)
    @interests += 1
    @orders << [:listen] if @interests == 1
  end

  # The last subscriber of a channel.
  def unsubscribe(_channel, _is_pattern)
    @interests -= 1
    @orders << [:ignore] if @interests.zero?
  end

  # @return [Boolean] false when NATS has been away for too long
  def publish(channel, message)
    return false if @orders.closed? || @orders.size >= @limit

    @orders << [:emit, channel, message.b]
    true
  end

  def close(seconds = 2)
    @orders.close
    @thread.join(seconds) || @thread.kill.join
  end

  private

  def work
    @nats = NATS.connect(@url, max_reconnect_attempts: -1, reconnect_time_wait: 0.2)
    while (verb, *words = @orders.pop)
      __send__(verb, *words)
    end
    @nats.flush
  ensure
    @nats&.close # nats-pure reopens open connections in every forked process
  end

  def listen
    @subscription = @nats.subscribe("#{PREFIX}>") do |message|
      hand_over([message.subject.delete_prefix(PREFIX)].pack("H*"), message.data)
    end
    @nats.flush # from here on no message is missed
  end

  def ignore
    @subscription.unsubscribe
  end

  def emit(channel, message)
    @nats.publish(PREFIX + channel.unpack1("H*"), message)
  end

  # NATS does not mark text, either.
  def hand_over(channel, message)
    text = message.dup.force_encoding(Encoding::UTF_8)
    Rondo::PubSub::PROCESS.publish(channel.force_encoding(Encoding::UTF_8), text.valid_encoding? ? text : message.b)
  end
end
