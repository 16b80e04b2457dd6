# frozen_string_literal: true

# Finds Rails, before or after this gem is loaded. `bundle exec rondo` loads the gem first, and then Bundler does not
# load it again when Rails is there; so what loads the application looks for the end of rails.rb.
# SPDX-License-Identifier: MIT

module Rondo
  # What the server does for applications of Rails; see docs/RAILS.md.
  module Rails
    autoload :EventStream, "rondo/rails/event_stream"

    # The first version of which the parts are known that are replaced.
    # @api private
    OLDEST = 7

    class << self
      # @api private
      # @return [Boolean] whether Rails is loaded, all of rails.rb
      def loaded?
        !defined?(::Rails::Application).nil? && ::Rails.respond_to?(:application)
      end

      # Adds {Railtie} if Rails is there and new enough.
      # @api private
      # @return [Boolean] whether there is nothing more to look for
      def attach
        return false unless loaded?
        return true if @attached

        @attached = true
        if ::Rails::VERSION::MAJOR < OLDEST
          PubSub.log.warn "! Rails #{::Rails::VERSION::STRING} is older than #{OLDEST}.0: Action Cable, Turbo and " \
                          "Live stay its own"
        else
          require "rondo/rails/railtie"
        end
        true
      end

      # Adds it as soon as all of rails.rb is loaded; for {WhileLoading.seek}.
      # @api private
      # @return [#call]
      def seeker
        ->(ended) { (ended.nil? || ended.equal?(defined?(::Rails) && ::Rails)) && attach }
      end
    end
  end
end
