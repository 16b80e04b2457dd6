# backtick_javascript: true
# frozen_string_literal: true

# Runs config.ru. Rack::Builder evaluates the text of the file; here the file is compiled like any other, so `run`,
# `use` and `map` are methods of the main object while it runs.
# SPDX-License-Identifier: MIT

module Rondo
  # Collects what a config.ru says, with the words of Rack::Builder.
  class Rackup
    class << self
      # The builder of the file that is running.
      attr_accessor :current

      # @param name [String] the name of the module that config.ru was compiled to
      # @return [#call] the application
      def load(name)
        self.current = new
        `Opal.require(name)`
        current.to_app
      ensure
        self.current = nil
      end
    end

    def initialize
      @middlewares = []
      @mapped = {}
    end

    def run(application = nil, &block)
      raise ArgumentError, "Both app and block given!" if application && block

      @application = application || block
    end

    def use(middleware, *arguments, **keywords, &block)
      @middlewares << lambda do |application|
        if keywords.empty?
          middleware.new(application, *arguments, &block)
        else
          middleware.new(application, *arguments, **keywords, &block)
        end
      end
    end

    def map(path, &block)
      builder = Rackup.new
      builder.instance_eval(&block)
      @mapped[path] = builder
    end

    def warmup(callable = nil, &block)
      @warmup = callable || block
    end

    def freeze_app
      @freeze = true
    end

    # @return [#call]
    # @raise [RuntimeError] the file runs nothing
    def to_app
      application = @mapped.empty? ? @application : mapped
      raise "missing run or map statement" unless application

      application = @middlewares.reverse.inject(application) { |inner, middleware| middleware.call(inner) }
      @warmup&.call(application)
      application
    end

    private

    def mapped
      applications = @mapped.transform_values(&:to_app)
      applications["/"] ||= @application if @application
      PathMap.new(applications)
    end
  end

  # Rack::URLMap without hosts: the longest prefix wins.
  class PathMap
    NOT_FOUND = "Not Found"

    # @param applications [Hash{String => #call}]
    def initialize(applications)
      @routes = applications.map { |path, application| [path.chomp("/"), application] }
                            .sort_by { |path, _| -path.length }
    end

    def call(env)
      script = env["SCRIPT_NAME"]
      path = env["PATH_INFO"]
      prefix, application = @routes.find { |route, _| below?(path, route) }
      return not_found(path) unless application

      begin
        env["SCRIPT_NAME"] = script + prefix
        env["PATH_INFO"] = path[prefix.length..]
        application.call(env)
      ensure
        env["SCRIPT_NAME"] = script
        env["PATH_INFO"] = path
      end
    end

    private

    def below?(path, route)
      path.start_with?(route) && [nil, "/"].include?(path[route.length])
    end

    def not_found(path)
      [404, { "content-type" => "text/plain", "x-cascade" => "pass" }, ["#{NOT_FOUND}: #{path}"]]
    end
  end
end

class << self
  def run(application = nil, &block) = Rondo::Rackup.current.run(application, &block)
  def use(*arguments, **keywords, &block) = Rondo::Rackup.current.use(*arguments, **keywords, &block)
  def map(path, &block) = Rondo::Rackup.current.map(path, &block)
  def warmup(callable = nil, &block) = Rondo::Rackup.current.warmup(callable, &block)
  def freeze_app = Rondo::Rackup.current.freeze_app
end
