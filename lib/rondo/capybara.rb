# frozen_string_literal: true

# `Capybara.server = :rondo`, and `:puma`, which is also Capybara's default, where the bundle has no puma. Loaded by
# `require "rondo"` where Capybara is there already, by what Capybara requires for `:puma` (rack/handler/puma.rb), or by
# `require "rondo/capybara"`. Sets no traps; any number of servers may run in the process.
# SPDX-License-Identifier: MIT

require "capybara"
require "rondo"
require "rondo/puma/gem"

module Rondo
  # Servers of Capybara's sessions.
  # @api private
  module CapybaraServer
    # Options that Capybara's own block for Puma takes, besides those of Puma.
    THREADS = /\A(?:(\d+):)?(\d+)\z/

    # What Capybara's own block for Puma calls, where that block was chosen before Rondo was there.
    module Chosen
      # Serves, and ends the thread with the server: the block would go on with classes of Puma.
      # @param app [#call]
      # @param options [Hash{Symbol => Object}] Host, Port, and as for {CapybaraServer.serve}
      # @return [void] never
      def config(app, options)
        CapybaraServer.serve(app, options[:Port], nil, **options)
        Thread.exit
      end
    end

    module_function

    # Serves until its thread is ended.
    # @param app [#call]
    # @param port [Integer]
    # @param host [String]
    # @param settings [Hash{Symbol => Object}] settings of the core; as for Puma also Threads ("0:4"), Host (another
    #   host, or ssl://HOST?cert=…&key=…) and Silent; others have no effect
    # @return [void]
    def serve(app, port, host, **settings)
      core = settings.slice(*Settings::CORE.keys).merge(threads(settings[:Threads]))
      server = Server.new(app, **core)
      server.listen(address(settings[:Host] || host, port))
      say(server.addresses) if settings[:Silent] == false
      server.run
    end

    def say(addresses)
      $stdout.puts "Capybara starting Rondo...", "* Listening on #{addresses.join(" ")}"
    end

    def address(host, port)
      place, query = host.to_s.split("?", 2)
      place = place.include?("://") ? "#{place}:#{port}" : Address.tcp_uri(place, port)
      [place, query].compact.join("?")
    end

    def threads(text)
      low, high = THREADS.match(text.to_s)&.captures&.map { |number| number&.to_i }
      high ? { min_threads: (low || high).clamp(1, [high, 1].max), max_threads: [high, 1].max } : {}
    end
    private_class_method :say, :address, :threads
  end
end

Capybara.register_server(:rondo) do |app, port, host, **settings|
  Rondo::CapybaraServer.serve(app, port, host, **settings)
end
unless Rondo::PumaGem.there?
  Capybara.register_server(:puma) do |app, port, host, **settings|
    Rondo::CapybaraServer.serve(app, port, host, **settings)
  end
end
