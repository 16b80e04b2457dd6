# frozen_string_literal: true

# What an address says: one Redis, the Sentinels of a master, or nodes of a Redis Cluster; who we are there, and the
# files with passwords and certificates. Each connection takes its settings from here (place.rb), so a file that was
# replaced counts from the next connection on. No text that comes from here has a password in it.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"
require "rondo/pubsub/queued/engine"

module Rondo
  module PubSub
    class Redis < Engine
      # An address and its options.
      # @api private
      class Address
        # A file of the address cannot be read: one line.
        class Unreadable < StandardError; end

        # Several hosts, which the URLs of the gem do not have.
        LIST = %r{\A(rediss?)\+(sentinel|cluster)://(?:([^@/?\#\s]*)@)?([^@/?\#\s]+)(/[^?\#\s]*)?(?:\?([^\#\s]*))?\z}
        PLAIN = %r{\A(rediss?://|unix://.)}
        HOST = /\A(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?\z/
        PORTS = { "sentinel" => 26_379, "cluster" => 6379 }.freeze
        HOSTS_MAX = 32
        # What Sentinel takes for a name.
        MASTER = /\A[A-Za-z0-9._-]{1,255}\z/
        DATABASE = /\A\d{1,5}\z/
        # Bytes of a file with a password.
        PASSWORD_MAX = 4096

        FILES = %i[ca_file cert key].freeze
        SENTINEL = %i[sentinel_username sentinel_password sentinel_password_file sentinel_tls].freeze
        OPTIONS = [:password_file, *FILES, *SENTINEL].freeze

        # @return [Symbol] :single, :sentinel or :cluster
        attr_reader :kind
        # @return [Array<Array(String, Integer)>] hosts and ports; none of a single one
        attr_reader :nodes
        # @return [String, nil] the name that Sentinels know
        attr_reader :master
        # @return [String] without passwords
        attr_reader :name

        # @param url [String]
        # @param options [Hash] {OPTIONS}, and others of RedisClient.config
        # @raise [ConfigurationError] one line
        def initialize(url, options)
          require "uri"
          require "redis-client"
          require "rondo/pubsub/redis/pump" # which needs openssl, as the gem does
          @own, @options = options.partition { |name, _| OPTIONS.include?(name) }.map(&:to_h)
          parse(url.to_s)
          check_options
          try
        rescue LoadError
          raise ConfigurationError, "Redis needs the gem redis-client: add it to the Gemfile"
        rescue ArgumentError, URI::Error
          raise ConfigurationError, "this is not the address of a Redis server: #{Queued.without_secrets(url)}"
        rescue Unreadable => e
          raise ConfigurationError, "Redis: #{e.message}"
        end

        # @param host [String, nil] nil: of the address
        # @param port [Integer, nil]
        # @return [RedisClient::Config] for one connection
        # @raise [Unreadable]
        def config(host = nil, port = nil)
          where = { host: host, port: port }.compact
          ::RedisClient.config(url: @url, protocol: 2, **credentials(:password_file), **where, **tls, **@options)
        end

        # @return [RedisClient::Config] of a Sentinel
        # @raise [Unreadable]
        def sentinel_config(host, port)
          credentials = { username: @own[:sentinel_username], password: @own[:sentinel_password],
                          **credentials(:sentinel_password_file) }
          encrypted = @is_tls && @own[:sentinel_tls] != "no"
          ::RedisClient.config(host: host, port: port, protocol: 2, ssl: encrypted, **credentials.compact,
                               **(encrypted ? tls : {}), **@options.slice(*(encrypted ? [:ssl_params] : [])))
        end

        # @param host [String]
        # @param port [Integer]
        # @return [String]
        def self.text(host, port)
          host.include?(":") ? "[#{host}]:#{port}" : "#{host}:#{port}"
        end

        # @return [String]
        def inspect
          "#<#{self.class} #{@name}>"
        end

        private

        # ---- parsing ----

        def parse(url)
          found = LIST.match(url) or return parse_plain(url)
          scheme, kind, user, hosts, path, query = found.captures
          @kind = kind.to_sym
          @is_tls = scheme == "rediss"
          @nodes = parse_hosts(hosts, PORTS.fetch(kind))
          database = parse_path(path.to_s)
          take_query(query, is_strict: true)
          list = @nodes.map { |node| Address.text(*node) }.join(",")
          @name = ["#{scheme}+#{kind}://#{list}", @master, database].compact.join("/")
          @url = "#{scheme}://#{"#{user}@" if user}#{Address.text(*@nodes.first)}#{"/#{database}" if database}"
          @user = URI(@url)
        end

        # What the gem understands by itself. It ignores options that it does not know, and others may mean them.
        def parse_plain(url)
          raise ArgumentError unless PLAIN.match?(url)

          @kind = :single
          @nodes = []
          @url = url
          @user = URI(url)
          @is_tls = url.start_with?("rediss:")
          take_query(@user.query, is_strict: false)
          config = ::RedisClient.config(url: url, protocol: 2, **@options)
          raise ArgumentError unless config.path || config.port.between?(1, 65_535)

          @name = config.server_url
        end

        def parse_hosts(text, port)
          hosts = text.split(",", -1)
          raise ArgumentError if hosts.size > HOSTS_MAX

          hosts.map do |host|
            found = HOST.match(host) or raise ArgumentError
            number = found[3] ? found[3].to_i : port
            raise ArgumentError unless number.between?(1, 65_535)

            [found[1] || found[2], number]
          end
        end

        # A cluster has only database 0.
        def parse_path(path)
          return raise_unless(["", "/", "/0"].include?(path)) if @kind == :cluster

          _, @master, database, more = path.split("/", -1)
          database = nil if database == ""
          raise_unless(more.nil? && MASTER.match?(@master.to_s) && (database.nil? || DATABASE.match?(database)))
          database
        end

        def raise_unless(is_right)
          raise ArgumentError unless is_right
        end

        def take_query(query, is_strict:)
          URI.decode_www_form(query.to_s).each do |name, value|
            known = OPTIONS.find { |option| option.to_s == name }
            next @own[known] = value if known
            raise ConfigurationError, "the address of Redis has an option that is none: #{name}" if is_strict
          end
        end

        def check_options
          complain "sentinel_tls is yes or no" unless [nil, "yes", "no"].include?(@own[:sentinel_tls])
          complain "#{files.first} needs an address with rediss" if files.any? && !@is_tls
          odd = @own.keys & SENTINEL
          complain "#{odd.first} needs an address with +sentinel" if odd.any? && @kind != :sentinel
          return unless @own[:password_file]

          complain "a password and password_file exclude each other" if @user.password.to_s != "" || @options[:password]
        end

        def complain(text)
          raise ConfigurationError, "the address of Redis: #{text}"
        end

        # What is wrong now is told at once, not at the first connection.
        def try
          config
          sentinel_config(*@nodes.first) if @kind == :sentinel
          files.each { |name| read(@own[name], 1 << 20) }
          config.ssl_context.setup if files.any?
        rescue OpenSSL::OpenSSLError => e
          raise Unreadable, "the certificates of the address cannot be used: #{e.message.lines.first.to_s.chomp}"
        end

        # ---- files ----

        def files
          FILES & @own.keys
        end

        def tls
          return {} if files.empty?

          { ssl_params: { **@options.fetch(:ssl_params, {}), **@own.slice(*files) } }
        end

        # With a file, what stands before the @ is the name of the user.
        def credentials(name)
          path = @own[name] or return {}
          user = URI.decode_www_form_component(@user.user.to_s) if name == :password_file
          { username: (user unless user == ""), password: password_in(path) }.compact
        end

        def password_in(path)
          text = read(path, PASSWORD_MAX).sub(/\r?\n\z/, "")
          raise Unreadable, "the file with the password is empty: #{path}" if text.empty?

          text
        end

        def read(path, limit)
          raise Unreadable, "not a file: #{path}" unless File.stat(path).file?

          text = File.binread(path, limit + 1).to_s
          raise Unreadable, "the file has more than #{limit} bytes: #{path}" if text.bytesize > limit

          text
        rescue SystemCallError => e
          raise Unreadable, "cannot read #{path}: #{SystemCallError.new(nil, e.errno).message}"
        end
      end
    end
  end
end
