# frozen_string_literal: true

# Which addresses the settings mean. Used by the launcher and the master.
# SPDX-License-Identifier: MIT

require "rondo"

module Rondo
  # Chooses between what was typed, what the file binds and what was inherited.
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

    # What no address is is found before the application is loaded.
    # @param settings [Settings::Resolved]
    # @return [void]
    # @raise [AddressError] one line
    def check(settings)
      wanted(settings).each { |uri| Address.parse(uri) }
    end

    # What was typed replaces what the file binds.
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
