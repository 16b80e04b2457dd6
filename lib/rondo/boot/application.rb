# frozen_string_literal: true

# Loads the application: the one in the configuration file, or a rackup file. There is none if only a static folder
# is served. Called by the launcher, by the mold, or by the worker if nothing is loaded before the fork.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/boot/failure"
require "rondo/boot/while_loading"
require "rondo/puma/library"

module Rondo
  # Finds and loads the application; a failure is one line, and its backtrace goes to the log.
  # @api private
  module Application
    # Words of the command line. A word that is mistyped names a file that does not exist.
    COMMANDS = %w[init check cert ctl top publish bench completion start server help version node].freeze

    module_function

    # @param settings [Settings::Resolved]
    # @param log [Logger]
    # @param debug [Boolean] keeps the server's own frames in the backtrace
    # @return [#call, nil] nil: only files are served
    # @raise [ConfigurationError]
    def load(settings, log, debug: false)
      return settings[:app] if settings.given?(:app)
      return say_none(log) if none?(settings)

      load_file(file(settings), settings.source(:rackup), log, debug)
    end

    # @param settings [Settings::Resolved]
    # @param log [Logger]
    # @param debug [Boolean] as for {.load}
    # @return [Array(#call, Hash{String => #call})] {.load}, and the applications of the verb `listen`, by {Address.key}
    # @raise [ConfigurationError]
    def load_all(settings, log, debug: false)
      PumaLibrary.offer
      seekers = settings[:fibers].zero? ? [Rails.seeker] : [Rails.seeker, Frameworks.seeker]
      app, others = WhileLoading.seek(seekers) do
        [load(settings, log, debug: debug), load_others(settings, log, debug: debug)]
      end
      Frameworks.prepare(settings[:fibers], log)
      [with_puma_env(app, settings), others.to_h { |uri, other| [Address.key(uri), with_puma_env(other, settings)] }]
    end

    # Whoever asks an env for a key of Puma has loaded its module, or says so by a setting.
    # @param app [#call, nil]
    # @param settings [Settings::Resolved]
    # @return [#call, nil] with Puma's keys in its env if it may ask for them
    def with_puma_env(app, settings)
      found = settings[:max_io_threads].positive? || PumaLibrary.loaded?
      wanted = settings.given?(:puma_env) ? settings[:puma_env] : found
      return app unless wanted && app.respond_to?(:call)

      require "rondo/puma/env"
      PumaEnv.new(app)
    end

    # @return [Hash{String => #call}] the applications of the verb `listen`, by URI
    # @raise [ConfigurationError]
    def load_others(settings, log, debug: false)
      (settings[:listen] || {}).to_h do |uri, other|
        [uri, other.respond_to?(:call) ? other : load_file(other, "listen", log, debug)]
      end
    end

    # Checks this before anything else is logged.
    # @param settings [Settings::Resolved]
    # @return [void]
    # @raise [ConfigurationError] there is no application
    def check(settings)
      file(settings) unless settings.given?(:app) || none?(settings)
      missing = (settings[:listen] || {}).values.find { |app| !app.respond_to?(:call) && !File.file?(app) } or return
      raise ConfigurationError, "no application: #{why_none(missing, "listen")}"
    end

    # @param settings [Settings::Resolved]
    # @return [Boolean] whether there is a static folder and no application was named
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

    def say_none(log)
      log.say "*          App: none"
      nil
    end
    private_class_method :say_none

    def load_file(path, source, log, debug)
      folder = Dir.pwd # the application may go elsewhere
      log.say "*          App: #{path} (#{source})"
      parse(path)
    rescue Error, SignalException
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException
      refuse(BootFailure.new(e, path, folder: folder, debug: debug), log)
    end
    private_class_method :load_file

    def parse(path)
      require "rack"
      require "rack/builder"
      app = Rack::Builder.parse_file(path)
      app.is_a?(Array) ? app.first : app
    end
    private_class_method :parse

    # Without a backtrace and a cause: the log has both, and `--debug` would write them once more.
    def refuse(failure, log)
      log.error failure.trace
      raise ConfigurationError, "the application cannot be loaded: #{failure.line}", [], cause: nil
    end
    private_class_method :refuse
  end
end
