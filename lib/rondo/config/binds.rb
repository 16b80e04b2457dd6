# frozen_string_literal: true

# The addresses to bind. Used by the launcher and the master.
# SPDX-License-Identifier: MIT

require "rondo"

module Rondo
  # Chooses among the command line, the configuration file and inherited sockets.
  module Binds
    module_function

    # @param settings [Settings::Resolved]
    # @param inherited [Inherited] what is served where nothing is bound
    # @return [Array<String>] URIs
    def uris(settings, inherited)
      wanted = wanted(settings)
      wanted = inherited.uris.uniq if wanted.empty? && inherited.any?
      wanted.empty? ? [default(settings)] : wanted
    end

    # Finds invalid addresses before the application is loaded.
    # @param settings [Settings::Resolved]
    # @return [void]
    # @raise [AddressError] one line
    def check(settings)
      wanted(settings).each { |uri| Address.parse(uri) }
    end

    # Addresses of the command line replace those of the file.
    def wanted(settings)
      typed = %i[bind port].select { |name| settings.source(name) == "command line" }
      return [*settings[:bind]] if typed.empty?

      [*(settings[:bind] if typed.include?(:bind)), *(default(settings) if typed.include?(:port))]
    end
    private_class_method :wanted

    def default(settings)
      Address.tcp_uri(settings[:host] || Address.any_host, settings[:port])
    end
    private_class_method :default
  end
end
