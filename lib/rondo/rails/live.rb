# frozen_string_literal: true

# ActionController::Live without a thread of the server: the stream that an action writes to is the server's. Rails
# gives the action a thread of its own, and lets the thread of the request carry what it writes to the client. Here that
# thread goes on to other requests as soon as the head is sent. See docs/RAILS.md.
# SPDX-License-Identifier: MIT

require "rondo/rails/isolation"
require "rondo/rails/live_parts"

module Rondo
  module Rails
    # Which streams are handed to the server, and how many at once.
    # @api private
    module Live
      # In the env of a request whose action writes straight to the server: the {Isolation} of the action; else nil.
      KEY = "rondo.live"

      @lock = Mutex.new
      @threads = 0
      @most = 0

      class << self
        # @param most [Integer] actions at once that write straight to the server
        # @return [void]
        # @raise [ConfigurationError] one line
        def attach(most)
          unless most.is_a?(Integer) && !most.negative?
            raise ConfigurationError, "config.rondo.live_streams must be an Integer, 0 or more, not #{most.inspect}"
          end

          @most = most
          ::ActionController::Live.prepend(Controller)
          ::ActionController::Live::Buffer.prepend(Buffer)
        end

        # Counts the thread of an action. One that is too many is Rails' own affair: it keeps the thread of its request,
        # so there can only be as many as the server has places.
        # @param env [Hash] of the request
        # @param controller [Class]
        # @return [Boolean] whether the server takes its stream
        def take(env, controller)
          env[KEY] = nil
          return false unless env["rack.hijack"].is_a?(Connection)

          state = Isolation.new(controller)
          return false unless @lock.synchronize { @threads < @most && (@threads += 1) }

          env[KEY] = state
          true
        end

        # @return [Boolean] whether the request runs in a fiber, and the action may run in another one
        def fibers?
          !Fiber.current_scheduler.nil? && ::ActiveSupport::IsolatedExecutionState.isolation_level == :fiber
        end

        # @return [void]
        def give_back
          @lock.synchronize { @threads -= 1 }
        end

        # Rails deletes the files of a form when the thread of the request is done with the answer, so it must not be
        # done before the action is.
        # @param env [Hash] of the request
        # @return [Boolean] whether its stream is the server's
        def taken?(env)
          !env[KEY].nil? && (env["rack.tempfiles"].nil? || env["rack.tempfiles"].empty?)
        end
      end

      # Goes before what ActionController::Live adds to a controller.
      module Controller
        # Where the action runs already, in the thread that it got.
        def process_action(*)
          request.env[KEY]&.become_current
          super
        end

        private

        def new_controller_thread
          return super unless Live.take(request.env, self.class)

          action = lambda do
            yield
          ensure
            Live.give_back
          end
          begin
            Live.fibers? ? Fiber.schedule(&action) : super(&action)
          rescue ThreadError, FiberError
            Live.give_back
            raise
          end
        end
      end

      # Goes before the buffer that is `response.stream`.
      module Buffer
        # A body that the server is to call answers to nothing else. Code that asks for its parts all the same gets
        # them.
        def respond_to?(name, *)
          case name
          when :each then !rondo_takes? && super
          when :call then rondo_takes?
          else super
          end
        end

        # By the server, when the head is sent.
        # @param stream [Rondo::Stream]
        # @return [void]
        def call(stream)
          @response.sending!
          @buf.hand_to(stream)
        end

        # Rails calls this when the thread of the request is done with the answer. Once the server has the stream, its
        # end is the client's.
        def abort
          super unless @buf.handed?
        end

        private

        def build_queue(queue_size)
          LiveParts.new(queue_size, gone: -> { @aborted = true }, sent: -> { @response.sent! })
        end

        def rondo_takes?
          Live.taken?(@response.request.env)
        end
      end
    end
  end
end
