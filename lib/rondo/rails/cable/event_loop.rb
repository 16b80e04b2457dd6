# frozen_string_literal: true

# What Action Cable's adapters and channels do on its event loop, without a thread of it: connections are the server's,
# blocks run where they are posted, and timers are the server's.
# SPDX-License-Identifier: MIT

module Rondo
  module Rails
    # See cable.rb.
    # @api private
    module Cable
      # Without a thread; in a process without a server as Rails has it.
      module Inline
        # A timer of the server, as Action Cable ends it.
        class Timer
          # @param task [Task]
          def initialize(task)
            @task = task
          end

          # @return [Boolean] whether it would have gone on
          def shutdown
            @task.cancel
          end
        end

        # @param task [#call, nil]
        # @yield at once; an error is logged, and stays here as in a thread of Rails' loop
        # @return [void]
        def post(task = nil, &block)
          return super unless Cable.serving?

          begin
            (task || block).call
          rescue StandardError, ScriptError => e # an adapter whose gem is missing
            ::ActionCable.server.logger.error("Action Cable: #{e.full_message(highlight: false)}")
          end
        end

        # @param interval [Numeric] seconds
        # @yield on an application thread, again and again
        # @return [#shutdown]
        def timer(interval, &block)
          return super unless Cable.serving?

          Timer.new(Rondo.run_every([interval * 1000, 1].max, &block))
        end
      end

      # Up to Rails 8.1; also for sockets that Action Cable has by hijack.
      if defined?(::ActionCable::Connection::StreamEventLoop)
        EventLoop = Class.new(::ActionCable::Connection::StreamEventLoop) { prepend Inline }
      end
      # From Rails 8.2 on.
      if defined?(::ActionCable::Server::ThreadedExecutor)
        Executor = Class.new(::ActionCable::Server::ThreadedExecutor) { prepend Inline }
      end
    end
  end
end
