# frozen_string_literal: true

# Engines of an application have the same meaning on both: the same is said to a server on MRI and to one on Node.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/node_process"
require "support/waiting"
require "support/websocket_peer"

class NodeEnginesTest < Minitest::Test
  include Waiting

  APP = File.expand_path("engines.ru", __dir__)

  def setup
    @servers = { mri: ServerProcess.new(APP), node: NodeProcess.new(APP) }
  end

  def teardown
    @servers.each_value(&:stop)
  end

  # Runs the block with a connection to each of them; what it returns is the same.
  def on_both
    heard = @servers.transform_values do |server|
      @server = server
      @peer = WebsocketPeer.new(server.url)
      yield
    ensure
      @peer.close
    end
    assert_equal(*heard.values)
    heard[:node]
  end

  def say(text)
    @peer.say(text)
    @peer.hear
  end

  # The engine on MRI is told by a thread of its own.
  def calls(count)
    heard = nil
    wait_until { (heard = say("calls").delete_prefix("calls: ").split(", ")).size >= count }
    heard
  end

  def test_an_engine_is_told_of_what_there_is_and_of_changes
    steps = { "sub a" => "subscribe a false", "sub p*" => "subscribe p* true", "unsub a" => "unsubscribe a false",
              "sub b" => "subscribe b false", "unsub p*" => "unsubscribe p* true" }
    told = on_both do
      say("sub before")
      say("attach")
      calls(1)
      say("sub before") # a subscription that is there already
      steps.each do |text, call|
        say(text)
        wait_until { calls(1).last == call }
      end
      calls(1).uniq
    end
    assert_equal ["subscribe before false", *steps.values], told
  end

  def test_the_default_engine_carries_messages_and_knows_of_subscriptions_before
    heard = on_both do
      answers = [say("default"), say("which")]
      @peer.say("both room hello")
      answers + [@peer.hear, @peer.hear].sort + calls(2)
    end
    assert_equal ["default: Recorder", "which: recorder", "both: [true, true]", "by engine: hello", "subscribe room false", "publish room hello known"], heard
  end

  def test_who_is_named_in_a_publish_needs_no_attach
    heard = on_both do
      say("sub c")
      ["by c x", "calls", "here c y"].each { |text| @peer.say(text) }
      Array.new(5) { @peer.hear }.sort
    end
    assert_equal ["by engine: x", "by: true", "calls: publish c x unknown", "here: true", "y"], heard
  end

  def test_detach_ends_it_and_reset_begins_again
    heard = on_both do
      say("default")
      say("sub a")
      calls(1)
      say("forget")
      say("reset")
      again = calls(1)
      say("detach")
      detached = [say("forget"), say("which"), say("sub b"), say("calls")]
      [again, detached]
    end
    assert_equal [["subscribe a false"], ["forget: []", "which: Rondo::PubSub::CLUSTER", "sub: true", "calls: "]], heard
  end

  def test_what_is_no_engine
    assert_equal ["half: ArgumentError: an engine must respond to publish", "plain: nil"], on_both { [say("half"), say("plain")] }
  end

  def test_an_engine_that_refuses_or_raises
    answers = on_both do
      say("default")
      say("mood refuse")
      refused = say("say c x")
      say("mood raise")
      raised = say("say c x")
      say("mood fine")
      [refused, raised, say("say c x")]
    end
    assert_equal ["say: false", "say: false", "say: true"], answers
    @servers.each_value { |server| assert_match(/^! Recorder#publish: .*cannot publish/, server.log) }
  end

  def test_a_notice_that_raised_is_repeated
    on_both do
      say("attach")
      say("mood raise")
      say("sub again")
      calls(1)
      say("mood fine")
      calls(2)
    end
    @servers.each_value { |server| assert_match(/^! Recorder#subscribe.*: .*not now/, server.log) }
  end

  def test_the_end_of_a_connection_is_told
    @servers.each_value do |server|
      @server = server
      other = WebsocketPeer.new(server.url)
      other.say("sub gone")
      other.hear
      @peer = WebsocketPeer.new(server.url)
      say("attach")
      calls(1)
      other.close
      assert_equal ["subscribe gone false", "unsubscribe gone false"], calls(2)
    ensure
      @peer.close
    end
  end
end
