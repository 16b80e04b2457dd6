# frozen_string_literal: true

# The thread of an engine for NATS: keeps one connection, to one of the addresses, and moves what the engine has
# queued. Nothing else ever waits for NATS.
# SPDX-License-Identifier: MIT

require "securerandom"
require "rondo/pubsub/queued/held"
require "rondo/pubsub/queued/pump"
require "rondo/pubsub/nats/answers"
require "rondo/pubsub/nats/link"
require "rondo/pubsub/nats/names"

module Rondo
  module PubSub
    class Nats < Engine
      # Requests and their answers, on one subscription.
      # @api private
      class Requests
        NAME = "r"

        # @return [String] subjects that come here
        attr_reader :inbox

        # @param link [Link]
        # @param timeout [Numeric] seconds for an answer
        def initialize(link, timeout)
          @link = link
          @timeout = timeout
          @inbox = "_INBOX.#{SecureRandom.hex(12)}"
          @asked = {}
          @count = 0
          link.push("SUB #{@inbox}.r.* #{NAME}\r\n")
        end

        # @return [Integer] without an answer
        def pending
          @asked.size
        end

        # @param subject [String]
        # @param data [String, Hash]
        # @yieldparam answer [Hash] of JSON
        # @return [void]
        def ask(subject, data = "", headers: {}, &block)
          number = @count += 1
          @asked[number] = [now + @timeout, block, subject]
          data = JSON.generate(data) if data.is_a?(Hash)
          @link.push(Wire.publish(subject, data, reply: "#{@inbox}.r.#{number}", headers: headers))
        end

        # Messages have the subject under which they were published, so each consumer has a subscription.
        # @param name [String]
        # @return [String] the subject for it
        def open(name)
          "#{@inbox}.#{name}".tap { |subject| @link.push("SUB #{subject} #{name}\r\n") }
        end

        # @param name [String]
        # @return [void]
        def shut(name)
          @link.push("UNSUB #{name}\r\n")
        end

        # For answers that are messages.
        # @param name [String] of {#open}
        # @return [void]
        def send_to(subject, data, name)
          @link.push(Wire.publish(subject, data, reply: "#{@inbox}.#{name}"))
        end

        # @param message [Message]
        # @return [void]
        def take(message)
          _, block = @asked.delete(message.subject.delete_prefix("#{@inbox}.r.").to_i)
          block&.call(answer_of(message))
        end

        # @param subject [String, nil]
        # @return [Boolean] whether its messages come here
        def own?(subject)
          subject.to_s.start_with?(@inbox)
        end

        # The server does not take what was asked under this subject.
        # @param subject [String, nil]
        # @param text [String] why not
        # @return [Boolean] whether something was
        def refuse(subject, text)
          refused = @asked.select { |_, asked| asked[2] == subject }
          refused.each_key { |number| @asked.delete(number) }
          refused.each_value { |_, block| block&.call({ "error" => { "code" => 403, "description" => text } }) }
          refused.any?
        end

        # @return [Float, nil] seconds until an answer is late
        def patience
          limit, = @asked.each_value.first
          limit && [limit - now, 0].max
        end

        private

        def answer_of(message)
          return { "error" => { "code" => 503, "none" => true } } if message.status == 503

          answer = JSON.parse(message.data)
          answer.is_a?(Hash) ? answer : {}
        rescue JSON::ParserError
          {}
        end

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end

      # Runs until it is told to end.
      # @api private
      class Pump
        include Queued::Pump

        # Messages and bytes under way at once.
        WINDOW = 256
        WINDOW_BYTES = 1 << 20

        # Of an engine.
        # @!attribute outbox [Queued::Outbox]
        # @!attribute interests [Interests]
        # @!attribute stream [Stream, nil]
        # @!attribute outage [Queued::Outage]
        # @!attribute held [Queued::Held]
        Parts = Struct.new(:outbox, :interests, :stream, :outage, :held)

        # @param engine [Nats] takes messages
        # @param addresses [Array<URI>] to be tried in turn
        # @param parts [Parts]
        # @param mutex [Mutex] of the engine, guards them
        # @param access [Credentials]
        # @param terms [Hash] of {Link#initialize}
        def initialize(engine, addresses, parts, mutex, access:, **terms)
          @engine = engine
          @addresses = addresses.shuffle
          @outbox, @interests, @stream, @outage, @held = parts.to_a
          @mutex = mutex
          @access = access
          @terms = terms
          @plain = []
          @kept = []
          @forbidden = {}
          @denied = {}
          open_waker
        end

        # @return [Array<Array(Entry, Boolean)>] as {Queued::Outbox#requeue} takes them
        def unanswered
          (@plain + @kept + @held.entries).sort_by(&:number).map { |entry| [entry, true] }
        end

        private

        def links
          [@link]
        end

        def turn
          open_link unless @link || @outage.pausing?
          feed if @link&.ready?
          wait
          @link&.turn
          look_at_session if @link&.ready?
        rescue Link::Broken => e
          give_up(e.message, e.is_a?(Link::Refused), is_denied: denied?(e))
        rescue StandardError => e
          give_up("#{e.message} (#{e.class})")
        end

        def open_link
          @link = Link.new(@addresses.rotate!.last, @access, on_refusal: method(:forbid), **@terms) do |message|
            take(message)
          end
        end

        def look_at_session
          begin_session unless @requests
          raise Link::Broken, "no answer within #{@terms[:timeout]} s" if @requests.patience&.zero?

          @outage.over if whole?
        end

        def whole?
          @stream.nil? || @stream.live?
        end

        def begin_session
          @requests = Requests.new(@link, @terms[:timeout])
          @engine.payload_max = [@link.info["max_payload"].to_i, 0].max
          @mutex.synchronize { @stream&.begin(@requests, @link) }
        end

        # Each address may have a user of its own.
        def denied?(error)
          error.is_a?(Link::Denied) ? @denied[@addresses.last] = true : @denied.delete(@addresses.last)
          @denied.size == @addresses.uniq.size
        end

        def give_up(reason, is_answer = false, **how) # rubocop:disable Style/OptionalBooleanParameter
          @link&.close
          @link = @requests = nil
          @is_asked = false
          @mutex.synchronize do
            @interests.forget_link
            @stream&.forget_link
            @outbox.requeue(unanswered)
            @held.clear
          end
          @plain.clear
          @kept.clear
          @forbidden.clear
          @outage.begin(reason, is_answer, **how)
        end

        # ---- what comes ----

        def take(message)
          if message.sid == Requests::NAME
            @mutex.synchronize { @requests&.take(message) }
          elsif message.sid.start_with?("c", "d")
            @mutex.synchronize { @stream&.take(message) }
          elsif @mutex.synchronize { @interests.take?(message) }
            @engine.deliver(message)
          end
        end

        # NATS says so before it answers the PING behind the message.
        def forbid(text)
          kind, subject = text.match(/ for (Publish|Subscription) to "([^"]*)"/i)&.captures
          raise Link::Refused, text if kind&.casecmp?("subscription") && @requests&.own?(subject)
          return if @mutex.synchronize { @requests&.refuse(subject, text) }

          @plain.each { |entry| @forbidden[entry.number] = true if @engine.subject_of(entry) == subject }
          @outage.refused(text)
        end

        # ---- what goes out ----

        def feed
          @mutex.synchronize do
            @interests.send_to(@link)
            @stream&.ask if @requests
            send_entries if @requests && whole?
          end
          confirm if @plain.any? && !@is_asked
        end

        def send_entries
          while room?
            entry = next_entry or break
            next refuse_long(entry) if long?(entry)

            entry.is_a?(Kept) ? send_kept(entry) : send_plain(entry)
          end
        end

        # While the stream takes nothing, messages for it are held, and hold up no others.
        def next_entry
          entry = @held.shift(@kept.empty?) and return entry

          while (entry = @outbox.shift { true })
            return entry unless @held.on? && entry.is_a?(Kept)

            @held.add(entry)
          end
        end

        def room?
          under_way < WINDOW && @link.unsent_bytes < WINDOW_BYTES
        end

        def under_way
          @plain.size + @kept.size + (@stream ? @stream.unread : 0)
        end

        # It was queued while no server had said how much it takes, or another one did.
        def long?(entry)
          most = @link.info["max_payload"].to_i
          return false unless most.positive? && entry.bytes.bytesize > most - HEAD_MAX

          entry.is_a?(Kept) || @engine.encode(entry)[/\A[^\r]* (\d+)\r/n, 1].to_i > most
        end

        def refuse_long(entry)
          refuse(entry, Nats::TOO_LONG)
        end

        def refuse(entry, reason)
          @outage.refused(reason)
          done(entry)
          @engine.tell(entry, false)
        end

        def send_plain(entry)
          @link.push(@engine.encode(entry))
          @plain << entry
        end

        # A message that a connection lost on its way may be in the stream.
        def send_kept(entry)
          return done(entry) if @stream.written?(entry)

          @kept << entry
          @stream.write(entry) { |refusal| written(entry, refusal) }
        end

        def written(entry, refusal)
          @kept.delete(entry)
          return done(entry) unless refusal

          text = Answers.text_of(refusal)
          Answers.later?(refusal) ? @held.refused(entry, text) : refuse(entry, text)
        end

        def done(entry)
          @held.settled(entry)
          @engine.done(entry)
        end

        # The server has what was sent before its answer.
        def confirm
          count = @plain.size
          @is_asked = true
          @link.ping do
            @is_asked = false
            @mutex.synchronize { @plain.shift(count).each { |entry| arrived(entry) } }
            @forbidden.clear
          end
        end

        def arrived(entry)
          @engine.done(entry)
          @engine.tell(entry, !@forbidden.key?(entry.number)) if entry.block
        end

        # ---- waiting ----

        def wait
          writing = @link&.unsent_bytes&.positive? ? [@link.io] : nil
          reading = @link&.reads? ? [@waker, @link.io] : [@waker]
          ready, = IO.select(reading, writing, nil, patience)
          @waker.read_nonblock(4096, exception: false) if ready&.include?(@waker)
        end

        def patience
          return 0 if @link&.more? && @link.reads?

          # The pause before an attempt is past when there is a link.
          pause = @outage.pause unless @link
          pauses = @mutex.synchronize { [@stream&.pause, held_pause] }
          [@link&.patience, @requests&.patience, pause, *pauses].compact.min
        end

        # What comes wakes this thread if none can be sent then.
        def held_pause
          @held.pause if @requests && @kept.empty? && whole? && room?
        end
      end
    end
  end
end
