# frozen_string_literal: true

# An application whose requests publish, and answer what the engine has answered. Whoever asks for an event stream gets
# the channels of the query. Tests: what holds for every engine that keeps messages, in cases of streams_case.rb. Who
# includes them has `store`, the server of the engine, and `begin_plain(workers)`, a server whose engine keeps nothing.
# SPDX-License-Identifier: MIT

module Confirming
  # `how`: SECONDS, or block; the answer of the request is what came.
  APP = <<~'RUBY'
    require "uri"
    require "timeout"
    Rondo::PubSub.history("kept:*", match: :redis, size: 2000)
    class Feed
      def initialize(names) = @names = names
      def on_open(client) = @names.each { |name| client.subscribe(name) }
    end
    run(lambda do |env|
      if env["rack.upgrade?"]
        env["rack.upgrade"] = Feed.new(env["QUERY_STRING"].split(","))
        next [200, {}, []]
      end
      channel, message, how = env["QUERY_STRING"].split(",")
      message = URI.decode_www_form_component(message)
      answer =
        if how == "block"
          heard = Queue.new
          queued = Rondo.publish(channel, message, confirm: 60) { |result| heard << result }
          "#{queued} #{Timeout.timeout(60) { heard.pop }}"
        else
          Rondo.publish(channel, message, confirm: how.to_f).to_s
        end
      [200, { "content-type" => "text/plain" }, [answer]]
    rescue Rondo::Error, ArgumentError => e
      [200, {}, ["#{e.class}: #{e.message}"]]
    end)
  RUBY

  # @return [String] what the engine has answered
  def ask(server, channel, message, how = "60")
    get(server, "/?#{channel},#{message},#{how}").body
  end

  # @param server [ServerProcess]
  # @param line [Regexp] of the program that ends
  # @param workers [Integer]
  # @return [void]
  def restart_by_exec(server, line, workers: 2)
    from = server.log.bytesize
    server.signal("USR2")
    [line, /^Rondo starting in cluster mode/, /Worker #{workers - 1} .* phase: 1/].each { |text| server.wait_for_log(text, from: from) }
  end

  module Tests
    # One application thread, which waits: the answer comes by another one.
    def test_the_answer_is_the_id_of_the_message
      a = server("-t", "1:1")
      reader = reader(server, "kept:x")
      wait_for_subscribers("kept:x", 1)
      reply = ask(a, "kept:x", "one")
      assert_match(/\A\d{16}\z/, reply)
      reader.read_until { reader.seen == ["one"] }
      assert_equal reader.last_id, reply
      reply = ask(a, "kept:x", "two", "block")
      reader.read_until { reader.seen.last == "two" }
      assert_equal "true #{reader.last_id}", reply
      assert_equal "true", ask(a, "plain", "three")
      assert_equal "true true", ask(a, "plain", "four", "block")
      assert_equal "false", ask(a, "kept:x", "five", "0")
      reader.read_until { reader.seen.last == "five" }
    end

    # It is not said to be there, and comes later.
    def test_while_the_engine_is_away_nobody_is_told_that_it_has_the_message
      a = server
      refute_equal "false", ask(a, "kept:x", "before")
      store.kill
      assert_equal "false", ask(a, "kept:x", "meanwhile", "0.2")
      waiting = Thread.new { ask(a, "kept:x", "until-it-is-back", "block") }
      plain = Thread.new { ask(a, "plain", "until-it-is-back", "block") }
      a.wait_for_log(/is not available/)
      store.start
      assert_match(/\Atrue \d{16}\z/, waiting.value)
      assert_equal "true true", plain.value
      reader = reader(a, "kept:x", after: "1")
      reader.read_until { reader.seen.size == 3 }
      assert_equal %w[before meanwhile until-it-is-back], reader.seen
    end

    # It is handed on to the next program, and goes before what is published since.
    def test_what_waits_for_the_engine_is_there_after_a_restart_by_exec
      a = server("-w", "1") # two have no order between them
      first = ask(a, "kept:x", "first")
      store.kill
      3.times { |n| assert_equal "false", ask(a, "kept:x", n.to_s, "0") }
      restart_by_exec(a, /^- 3 published messages wait for /, workers: 1)
      assert_equal "false", ask(a, "kept:x", "3", "0")
      store.start
      reader = reader(a, "kept:x", after: first)
      reader.read_until { reader.seen.size == 4 }
      assert_equal [%w[0 1 2 3], 0], [reader.seen, reader.resets]
    end

    # Nobody had said that it is there. It goes again, under its number.
    def test_what_had_no_answer_is_there_once_after_a_restart_by_exec
      a = server
      first = ask(a, "kept:x", "first")
      store.freeze_process
      assert_equal "false", ask(a, "kept:x", "sent", "1")
      restart_by_exec(a, /^- 1 published messages wait for /)
      store.thaw
      refute_equal "false", ask(a, "kept:x", "last")
      reader = reader(a, "kept:x", after: first)
      reader.read_until { reader.seen.include?("last") }
      assert_equal [%w[sent last], 0], [reader.seen, reader.resets]
    end

    # The messages of a program that is not there go on in this one.
    def test_what_waits_for_the_engine_stays_if_no_program_can_be_executed
      a = server("-R", "no-such-program-anywhere")
      first = ask(a, "kept:x", "first")
      store.kill
      assert_equal "false", ask(a, "kept:x", "one", "0")
      from = a.log.bytesize
      a.signal("USR2")
      a.wait_for_log(/^! .*No such file/, from: from)
      assert_equal "false", ask(a, "kept:x", "two", "0")
      store.start
      reader = reader(a, "kept:x", after: first)
      reader.read_until { reader.seen.size == 2 }
      assert_equal [%w[one two], 0], [reader.seen, reader.resets]
    end

    def test_many_at_once_get_their_own_answers
      a = server("-t", "16:16")
      replies = Array.new(16) { |n| Thread.new { Array.new(20) { |i| ["#{n}-#{i}", ask(a, "kept:#{n}", "#{n}-#{i}")] } } }
      replies = replies.flat_map(&:value).to_h
      assert_empty replies.reject { |_, reply| reply.match?(/\A\d{16}\z/) }, a.log
      16.times do |n|
        reader = reader(a, "kept:#{n}", after: replies["#{n}-0"])
        reader.read_until { reader.seen.size == 19 }
        assert_equal replies["#{n}-19"], reader.last_id
      end
      assert_equal 320, replies.values.uniq.size
    end

    def test_an_engine_that_keeps_nothing_answers_too
      %w[2 0].each do |workers|
        a = begin_plain(workers)
        a.wait_for_log(/(Redis|NATS) at|Listening/)
        assert_equal "true", ask(a, "kept:x", "one"), workers
        assert_equal "true true", ask(a, "kept:x", "one", "block")
        a.stop
      end
    end

    # What goes along is no part of the message.
    def test_subscribers_get_the_message_without_a_note
      a = server
      reader = reader(a, "kept:x")
      wait_for_subscribers("kept:x", 1)
      ["text", "gr%C3%BC%C3%9F"].each { |message| ask(a, "kept:x", message) }
      reader.read_until { reader.seen.size == 2 }
      assert_equal ["text", "grüß"], reader.seen.map { |text| text.dup.force_encoding("UTF-8") }
    end
  end
end
