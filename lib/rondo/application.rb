# frozen_string_literal: true

# Loads what is served: the application that the configuration file gave, or a rackup file, or none
# where a static folder is all there is. Called by the launcher, the mold, or the worker where nothing
# is loaded before the fork.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/boot_error"

module Rondo
  # Finds and loads the application; every failure is one line.
  module Application
    # Words of the command line; whoever mistypes one names a file that is not there.
    COMMANDS = %w[init check ctl top].freeze

    module_function

    # @param settings [Settings::Resolved]
    # @param log [Logger]
    # @param debug [Boolean] writes the whole backtrace, too
    # @return [#call, nil] nil: only files are served
    # @raise [ConfigurationError]
    def load(settings, log, debug: false)
      return settings[:app] if settings.given?(:app)
      return say_none(log) if none?(settings)

      path = file(settings)
      log.say "*          App: #{path} (#{settings.source(:rackup)})"
      parse(path)
    rescue Error, SignalException
      raise
    rescue SyntaxError => e
      fail_with(e, e.message.lines.first.to_s.chomp, log, debug)
    rescue Exception => e # rubocop:disable Lint/RescueException
      fail_with(e, "#{place_of(e, path)}: #{BootError.words(e)}", log, debug)
    end

    # @param settings [Settings::Resolved]
    # @return [Boolean] whether there is a static folder, and nobody has named an application
    def none?(settings)
      return false if settings[:public].nil? || settings.given?(:app) || settings.given?(:rackup)

      !File.file?(settings[:rackup])
    end

    # @param settings [Settings::Resolved]
    # @return [String] the path of the rackup file
    # @raise [ConfigurationError] there is none
    def file(settings)
      wanted = settings[:rackup]
      [wanted, "#{wanted}.ru"].find { |path| File.file?(path) } or
        raise ConfigurationError, "no application: #{why_none(wanted, settings.source(:rackup))}"
    end

    def why_none(wanted, source)
      return "#{wanted} is a folder, not a file such as config.ru" if File.directory?(wanted)

      "#{wanted} does not exist in #{Dir.pwd}#{Server.nearest(wanted, COMMANDS) if source == "command line"}"
    end
    private_class_method :why_none

    # @param error [Exception]
    # @param path [String] the file that is blamed where the backtrace does not say
    # @return [String] file and line
    def place_of(error, path)
      at = Array(error.backtrace).find { |line| line.include?(File.basename(path.to_s)) }
      (at || error.backtrace&.first).to_s[/\A.*?:\d+/] || path
    end

    def say_none(log)
      log.say "*          App: none"
      nil
    end
    private_class_method :say_none

    def parse(path)
      require "rack"
      require "rack/builder"
      app = Rack::Builder.parse_file(path)
      app.is_a?(Array) ? app.first : app
    end
    private_class_method :parse

    def fail_with(error, line, log, debug)
      log.error error.full_message(highlight: false) if debug
      raise ConfigurationError, "the application cannot be loaded: #{line}"
    end
    private_class_method :fail_with
  end
end
