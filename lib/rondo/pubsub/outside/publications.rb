# frozen_string_literal: true

# Requests of the control server's `/publish` that wait (lib/rondo/process/control.rb). One thread publishes what they
# bring, in turn. Another one keeps their deadlines and takes the answers of the engine, so an engine that is stuck
# keeps nobody from an answer that says which messages are published. docs/PUBLISHING.md is the manual.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/pubsub/outside/publication"

module Rondo
  # Each request is answered once. What was not begun by then is not published any more.
  # @api private
  class Publications
    # Requests that wait for the engine at once: fewer than the control server keeps, so that others find room.
    MOST_CONFIRMED = 32
    # Of the time after which the core answers itself, without knowing what was published.
    SHARE = 0.8
    FULL = "#{MOST_CONFIRMED} requests wait for the engine already: publish it again later".freeze

    # The control server has closed its end. An engine raises errors of input and output of its own.
    class Closed < StandardError; end

    # @!attribute id [String] for the answer
    # @!attribute confirm [Float, nil] seconds for the engine
    # @!attribute due [Float]
    # @!attribute results [Array, nil] of {Publication#report}; nil: the body was not read yet
    # @!attribute owed [Hash{Integer => Owed}] what the engine has not answered, by the place of the message
    # @!attribute is_given [Boolean] all of its messages were given to the engine
    Request = Struct.new(:id, :confirm, :due, :results, :owed, :is_given)

    # A message whose answer the engine owes; see {PubSub.publish_for}.
    Owed = Struct.new(:owner, :request, :index, :wait) do
      # It is there. Any thread, under the lock of {PubSub::Confirms}.
      # @return [void]
      def signal
        owner.come(self)
      end
    end

    # @param publication [Publication]
    # @param seconds [Numeric] until a request must be answered
    # @param log [#error]
    # @param fetch [#call] from an id to a body; nil: nobody waits for it any more
    # @param reply [#call] gets id, status and JSON; raises IOError or SystemCallError at the end
    def initialize(publication, seconds, log:, fetch:, reply:)
      @publication = publication
      @seconds = seconds * SHARE
      @log = log
      @fetch = fetch
      @reply = reply
      @mutex = Mutex.new
      @news = ConditionVariable.new
      @requests = {}
      @queue = Thread::Queue.new
      @threads = {}
    end

    # Does not wait.
    # @param id [String]
    # @param confirm [Float, nil] seconds to wait for the engine
    # @return [void]
    def add(id, confirm)
      request = Request.new(id, confirm, now + @seconds, nil, {}, false)
      return @reply.call(id, *@publication.refusal(503, FULL, published: 0)) unless enter(request)

      start
      @queue << request
    end

    # Nothing more is begun, not even the rest of a request.
    # @return [void]
    def close
      @queue.close
      owed = @mutex.synchronize do
        @ended = true
        @news.signal
        @requests.each_value.flat_map { |request| request.owed.values }.tap { @requests.clear }
      end
      drop(owed)
    end

    # The engine has answered. Any thread.
    # @param owed [Owed]
    # @return [void]
    def come(owed)
      request = owed.request
      @mutex.synchronize do
        request.owed.delete(owed.index)
        request.results[owed.index] = owed.wait.result
        @news.signal if complete?(request)
      end
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def enter(request)
      @mutex.synchronize do
        is_full = request.confirm && @requests.each_value.count(&:confirm) >= MOST_CONFIRMED
        next if is_full

        @news.signal # there is another deadline
        @requests[request.id] = request
      end
    end

    # An engine may have ended the thread that it was called on.
    def start
      { "rondo publish" => method(:work_off), "rondo publications" => method(:watch) }.each do |name, work|
        next if @threads[name]&.alive?

        @threads[name] = Thread.new { work.call }.tap { |thread| thread.name = name }
      end
    end

    def to_other_side
      yield
    rescue IOError, SystemCallError
      raise Closed
    end

    # ---- the thread that publishes ----

    def work_off
      while (request = @queue.pop)
        publish(request)
      end
    rescue Closed
      nil
    end

    # Whatever an engine raises, the next one is published.
    def publish(request)
      messages = messages_of(request) or return
      give(request, messages)
      given(request)
    rescue Publication::Refused => e
      answer(request) { @publication.refusal(400, e.message) }
    rescue Closed
      raise
    rescue *PubSub::ERRORS => e # a thread that it ended would answer nobody any more
      @log.error "! control server: publish: #{e.message} (#{e.class})"
      answer(request) { @publication.report(request.results, 500, "publish: #{e.class}") }
    end

    # @return [Array, nil] nil: nobody waits any more
    def messages_of(request)
      return unless waits?(request)

      body = to_other_side { @fetch.call(request.id.to_i) } or return forget(request)
      @publication.parse(body).tap do |messages|
        @mutex.synchronize { request.results = Array.new(messages.size, false) }
      end
    end

    # In turn, and no more after the first one for which there is no room.
    def give(request, messages)
      messages.each_with_index do |(channel, text), index|
        break unless begin_one(request, index) && give_one(request, index, channel, text)
      end
    end

    # @return [Boolean] whether the next one may follow
    def give_one(request, index, channel, text)
      taken = request.confirm ? ask(request, index, channel, text) : Rondo.publish(channel, text)
      is_refused = !taken || taken == :unable
      note(request, index, taken) if is_refused || !request.confirm
      !is_refused
    end

    # From here on it is not known whether the message is published.
    def begin_one(request, index)
      @mutex.synchronize do
        next unless @requests.key?(request.id)

        request.results[index] = nil
        true
      end
    end

    # @return [PubSub::Confirms::Wait, Symbol, nil]
    def ask(request, index, channel, text)
      owed = Owed.new(self, request, index)
      @mutex.synchronize { request.owed[index] = owed }
      PubSub.publish_for(owed, channel, text, request.confirm)
    ensure
      drop([owed]) unless waits?(request) # its time was up meanwhile
    end

    def waits?(request)
      @mutex.synchronize { @requests.key?(request.id) }
    end

    def note(request, index, result)
      @mutex.synchronize do
        request.owed.delete(index)
        request.results[index] = result || false
      end
    end

    def given(request)
      is_complete = @mutex.synchronize do
        request.is_given = true
        request.due = now + request.confirm if request.confirm
        @news.signal
        complete?(request)
      end
      answer(request) { report(request) } if is_complete
    end

    # ---- the thread that watches ----

    def watch
      requests_of_now.each { |request| answer(request) { report(request) } } until @ended
    rescue Closed
      nil
    end

    # Waits for one that is complete, or whose time is up.
    def requests_of_now
      @mutex.synchronize do
        found = []
        until @ended || found.any?
          found = @requests.each_value.select { |request| complete?(request) || request.due <= now }
          @news.wait(@mutex, pause) if found.empty?
        end
        found
      end
    end

    # @return [Float, nil] seconds until the next deadline
    def pause
      due = @requests.each_value.map(&:due).min
      due && [due - now, 0].max
    end

    # ---- answers ----

    def complete?(request)
      request.is_given && request.owed.empty?
    end

    def forget(request)
      @mutex.synchronize { @requests.delete(request.id) }
      nil
    end

    # @yieldreturn [Array(Integer, String)]
    def answer(request)
      (status, text), owed = @mutex.synchronize { [yield, request.owed.values] if @requests.delete(request.id) }
      return unless status

      drop(owed)
      to_other_side { @reply.call(request.id, status, text) }
    end

    # An answer that comes later is for nobody.
    def drop(owed)
      owed.each { |one| PubSub.confirms.drop(one.wait) if one.wait }
    end

    def report(request)
      results = request.results or
        return @publication.refusal(504, "the requests before it take too long", published: 0)
      return @publication.report(results, is_detailed: !request.confirm.nil?) unless results.include?(:unable)

      @publication.report(results.map { |result| result == :unable ? false : result }, 501, PubSub::CANNOT_CONFIRM)
    end
  end
end
