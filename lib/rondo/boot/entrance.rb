# frozen_string_literal: true

# What settings put in front of the application: the ids of requests, 501 for methods that are not allowed, an empty
# fiber for each request, and the work of `out_of_band` after requests. Without such a setting nothing stands there.
# SPDX-License-Identifier: MIT

module Rondo
  # The way into the applications of one server.
  # @api private
  class Entrance
    # Answers 501 in place of the application.
    Methods = Struct.new(:app, :allowed) do
      # @param env [Hash]
      # @return [Array] a response
      def call(env)
        method = env["REQUEST_METHOD"]
        return app.call(env) if allowed.include?(method)

        [501, { "content-type" => "text/plain" }, ["#{method} method is not supported"]]
      end
    end

    # Each request finds fiber-local variables that no request before has set.
    EmptyFiber = Struct.new(:app) do
      # @param env [Hash]
      # @return [Array] the application's response
      def call(env)
        Fiber.new(blocking: true) { app.call(env) }.resume
      end
    end

    # Calls a block when the server has nothing to do any more.
    class OutOfBand
      # @param work [#call]
      # @param log [Logger]
      # @param active [#call] returns the number of requests that are not over
      def initialize(work, log, active)
        @work = work
        @log = log
        @active = active
        @lock = Mutex.new
        @waits = false
      end

      # Asked for at the end of a request; until the work has begun, further requests add nothing.
      # @return [void]
      def request
        @lock.synchronize do
          return if @waits

          @waits = true
        end
        Rondo.on_idle { try }
      end

      private

      # A request that is under way asks again at its end.
      def try
        @lock.synchronize { @waits = false }
        @work.call if @active.call.zero?
      rescue StandardError => e
        @log.error "! out_of_band raised at #{e.backtrace&.first.to_s[/\A.*?:\d+/]}: " \
                   "#{e.message.lines.first.to_s.chomp} (#{e.class})"
      end
    end

    # Tells {OutOfBand} of the end of each request.
    AfterRequest = Struct.new(:app, :out_of_band) do
      # @param env [Hash]
      # @return [Array] the application's response
      def call(env)
        (env["rack.response_finished"] ||= []) << ->(*) { out_of_band.request }
        app.call(env)
      end
    end
    private_constant :Methods, :EmptyFiber, :OutOfBand, :AfterRequest

    # @param options [Hash{Symbol => Object}] of {Server#initialize}
    # @param log [Logger]
    # @param active [#call] returns the number of requests that are not over
    def initialize(options, log, active)
      @methods = options[:allowed_methods]&.to_h { |name| [name, true] }
      @fiber_each = options[:fiber_each]
      @request_ids = options[:request_ids]
      @out_of_band = options[:out_of_band] && OutOfBand.new(options[:out_of_band], log, active)
      @known = {}.compare_by_identity
    end

    # @param app [#call, nil]
    # @return [#call, nil] the same object if no setting asks for more
    def before(app)
      return app unless app.respond_to?(:call) && (@methods || @fiber_each || @out_of_band || @request_ids)

      @known[app] ||= stand_before(app)
    end

    private

    def stand_before(app)
      app = EmptyFiber.new(app) if @fiber_each
      app = AfterRequest.new(app, @out_of_band) if @out_of_band
      app = Methods.new(app, @methods) if @methods
      @request_ids ? RequestIds.new(app, @request_ids == :make) : app
    end
  end
end
