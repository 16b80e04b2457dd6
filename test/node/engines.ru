# frozen_string_literal: true

# The application of the tests of engines: the same on MRI and on Node. What is said on `/talk` is done, and the answer is
# what the engine has been told since the last question.
# SPDX-License-Identifier: MIT

# Writes down its calls, and brings messages back by itself.
class Recorder
  attr_reader :calls
  attr_accessor :mood

  def initialize
    @calls = []
    @known = {}
  end

  def subscribe(channel, is_pattern)
    @calls += ["subscribe #{channel} #{is_pattern}"]
    raise "not now" if mood == "raise"

    @known[channel] = true
  end

  def unsubscribe(channel, is_pattern)
    @calls += ["unsubscribe #{channel} #{is_pattern}"]
    @known.delete(channel)
  end

  def publish(channel, message)
    @calls += ["publish #{channel} #{message} #{@known[channel] ? "known" : "unknown"}"]
    raise "cannot publish" if mood == "raise"
    return false if mood == "refuse"

    Rondo::PubSub::PROCESS.publish(channel, "by engine: #{message}")
  end

  def forget
    @calls = []
  end
end

# Has two methods of three.
class Half
  def subscribe(_channel, _is_pattern) = nil
  def unsubscribe(_channel, _is_pattern) = nil
end

RECORDER = Recorder.new

# One word and its arguments in a message.
class Talk
  def on_message(client, text)
    word, *rest = text.split
    client.write("#{word}: #{answer(client, word, rest)}")
  end

  def answer(client, word, rest)
    case word
    when "attach" then Rondo::PubSub.attach(RECORDER).inspect
    when "detach" then Rondo::PubSub.detach(RECORDER).inspect
    when "reset" then Rondo::PubSub.reset(RECORDER).inspect
    when "default" then (Rondo::PubSub.default = RECORDER).class.name
    when "which" then Rondo::PubSub.default.is_a?(Recorder) ? "recorder" : Rondo::PubSub.default.inspect
    when "calls" then RECORDER.calls.join(", ")
    when "forget" then RECORDER.forget.inspect
    when "mood" then RECORDER.mood = rest.first
    when "sub" then client.subscribe(rest.first, match: rest.first.include?("*") ? :redis : nil).inspect
    when "unsub" then client.unsubscribe(rest.first, match: rest.first.include?("*") ? :redis : nil).inspect
    when "say" then client.publish(*rest).inspect
    when "by" then client.publish(*rest, RECORDER).inspect
    when "here" then client.publish(*rest, false).inspect
    when "both" then [client.subscribe(rest.first), client.publish(*rest)].inspect
    when "half" then Rondo::PubSub.attach(Half.new)
    when "plain" then Class.new(Rondo::PubSub::Engine).new.subscribe("a", false).inspect
    end
  rescue ArgumentError => e
    "ArgumentError: #{e.message}"
  end
end

run lambda { |env|
  env["rack.upgrade"] = Talk.new if env["rack.upgrade?"]
  [200, {}, ["hello"]]
}
