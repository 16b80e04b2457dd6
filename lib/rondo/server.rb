# frozen_string_literal: true

# One server as an object: for the launcher, for Rackup handlers, for tests that want several in one
# process. The work is done by Server::Core in the extension (ext/rondo/threads/rb_server.c).
# SPDX-License-Identifier: MIT

module Rondo
  # Serves one Rack application.
  #
  # @example
  #   server = Rondo::Server.new(app, keep_alive_timeout_ms: 5_000)
  #   server.listen("tcp://127.0.0.1:0") # => "http://127.0.0.1:41234"
  #   thread = Thread.new { server.run }
  #   server.stop
  class Server
    # What an option may be besides nil: words, and the test. Those of the core are handed to the extension.
    Option = Struct.new(:core, :words, :test)
    private_constant :Option
    ANY = Option.new(false).freeze
    ANY_OF_CORE = Option.new(true).freeze
    STRING = Option.new(true, "a String", String).freeze
    ARRAY = Option.new(true, "an Array", Array).freeze
    ARRAY_OF_SHELL = Option.new(false, "an Array", Array).freeze
    CALLABLE = Option.new(false, "something that responds to call", ->(value) { value.respond_to?(:call) }).freeze
    IDS = Option.new(true, ":pass or :make", ->(value) { %i[pass make].include?(value) }).freeze
    private_constant :ANY, :ANY_OF_CORE, :STRING, :ARRAY, :ARRAY_OF_SHELL, :CALLABLE, :IDS

    OPTION_TABLE = {
      environment: ANY, log: ANY, needs_address: ANY, request_log: ANY_OF_CORE, request_log_format: ANY_OF_CORE,
      request_ids: IDS,
      lowlevel_error_handler: CALLABLE, trusted_proxies: ARRAY, proxy_protocol_from: ARRAY, url_scheme: STRING,
      default_host: STRING, client_address: STRING, client_field: STRING, proxy_protocol_optional: ANY_OF_CORE,
      allowed_methods: ARRAY_OF_SHELL, out_of_band: CALLABLE, fiber_each: ANY,
      allowed_origins: ANY, public: STRING, public_only: ANY_OF_CORE,
      x_sendfile_roots: ARRAY, sendfile_type: STRING, scoreboard: ANY_OF_CORE, row: ANY_OF_CORE,
      inbox: ANY_OF_CORE, inboxes: ANY_OF_CORE, link: ANY_OF_CORE, tickets: ANY_OF_CORE,
      thread_start: ANY_OF_CORE, thread_exit: ANY_OF_CORE
    }.freeze
    private_constant :OPTION_TABLE
    # Names of all options.
    OPTIONS = OPTION_TABLE.keys.freeze
    # Those that the core takes.
    # @api private
    CORE_OPTIONS = OPTION_TABLE.select { |_, option| option.core }.keys.freeze

    # @param app [#call, nil] a Rack application; nil: only the files of the folder `public`
    # @param settings [Hash{Symbol => Object}] settings of the core by name (docs/CONFIGURATION.md),
    #   and of {OPTIONS}: environment [String] shows backtraces when "development"; log [#info,
    #   #error]; needs_address [Boolean] false: it may listen nowhere;
    #   request_log [#write] gets whole lines; request_log_format [:common, :json]; request_ids [Symbol] :pass shows
    #   valid ids of clients in log lines, :make also makes ids where there is none;
    #   lowlevel_error_handler [Proc]; trusted_proxies, proxy_protocol_from [Array<String>]
    #   addresses and networks, "unix" for peers of Unix sockets; proxy_protocol_optional [Boolean] these peers may do
    #   without their header; url_scheme, default_host [String]; client_address [String] REMOTE_ADDR of every request,
    #   client_field [String] the field of a request in which trusted_proxies name the client; allowed_methods
    #   [Array<String>] others are answered 501; out_of_band [#call] as for the verb; fiber_each [Boolean] each request
    #   runs in an empty fiber;
    #   allowed_origins [Symbol, Array<String>, #call] see {Origins#initialize}; public [String] a folder
    #   whose files are served without Ruby;
    #   public_only [Boolean] whatever is not in it is not there; x_sendfile_roots [Array<String>] folders
    #   whose files the application may name by X-Sendfile or X-Accel-Redirect, the public one without it;
    #   sendfile_type [String] which of the two Rack::Sendfile uses; scoreboard [Scoreboard], row
    #   [Integer] the row it writes; inbox [Integer], inboxes [Array<Integer, nil>] descriptors by
    #   which the workers of a cluster give each other connections; link [Integer] a socket to the hub of
    #   the cluster, which is taken over; tickets [TLS::Tickets] the keys of its session tickets; thread_start,
    #   thread_exit [#call] run in every application thread
    # @raise [SettingError] one line
    def initialize(app, **settings)
      options, numbers = settings.partition { |name, _| OPTIONS.include?(name) }.map(&:to_h)
      check_kinds(options)
      options[:public_only] = true if app.nil? && options[:public]
      unless options[:public_only] || app.respond_to?(:call)
        raise SettingError,
              "the application does not respond to call"
      end

      @log = options[:log] || Logger.errors_only
      reporter = Reporter.new(log: @log, handler: options[:lowlevel_error_handler],
                              development: options[:environment] == "development", folder: options[:public])
      check(numbers)
      core_options = options_of_core(options, numbers).merge(reporter: reporter)
      choose_env_extras(numbers, options)
      @entrance = Entrance.new(options, @log, -> { stats[:active] })
      @app = app
      @core = Core.new(@entrance.before(app), numbers, core_options)
      @needs_address = options.fetch(:needs_address, true)
      begin_listeners
    end

    # Binds and listens at once; connections wait in the kernel until {#run}.
    # @param uri [String] tcp://HOST:PORT, ssl://HOST:PORT, unix:///PATH, unix://@NAME; options as a query: backlog,
    #   reuse_port, low_latency, mode, umask; for ssl cert, key and the rest of {TLS}
    # @param app [#call, nil] the application of this address; nil: that of the server. The folder `public` is not
    #   served there
    # @param tls [TLS::Material, nil] for ssl: instead of what its files have
    # @return [String] the address as a URL, with the real port where 0 was asked for
    # @raise [AddressError] one line
    # @raise [ArgumentError] the application does not respond to call
    def listen(uri, app = nil, tls: nil)
      address = Address.parse(uri)
      raise AddressError, "cannot listen on #{uri}: listen_raw does that" if address[:raw]

      open_all((tls ? address.merge(tls: tls) : Address.read_tls(uri, address)).merge(site_of(app)))
    end

    # Binds and listens like {#listen}, but nothing on these connections is HTTP: their bytes go to a handler, and
    # come from it, as they are (docs/RAW.md).
    # @param uri [String] as for {#listen}
    # @param maker [#call, Object, nil] as the block; without `call`: the handler of all connections
    # @param tls [TLS::Material, nil] as for {#listen}
    # @yieldreturn [Object, nil] the handler of a connection that was just accepted; nil closes it
    # @return [String] the address, with the real port where 0 was asked for
    # @raise [AddressError] one line
    def listen_raw(uri, maker = nil, tls: nil, &block)
      maker = Raw.maker_of(maker, block)
      address = Address.parse(uri).merge(raw: maker)
      Address.without_mark(open_all(tls ? address.merge(tls: tls) : Address.read_tls(uri, address)))
    end

    # Adopts a listening descriptor like {#listen_fd}, for raw connections.
    # @param descriptor [Integer]
    # @param maker [#call, Object, nil] as for {#listen_raw}
    # @param owns_file [Boolean]
    # @param tls [TLS::Material, nil] for connections with TLS
    # @return [String] its address
    # @raise [AddressError] one line
    def listen_raw_fd(descriptor, maker = nil, owns_file: false, tls: nil, &block)
      scheme = tls ? "https" : "http"
      address = { kind: :fd, fd: descriptor, owns_file: owns_file, scheme: scheme, tls: tls }
      Address.without_mark(open_address(address.merge(raw: Raw.maker_of(maker, block)))[:url])
    end

    # Makes a raw connection of a socket that the application has connected. The server has a duplicate of the
    # descriptor; the application may close its own. Both do not block any more.
    # @param socket [Integer, BasicSocket] a connected stream socket
    # @param handler [Object] its callbacks, as those of {#listen_raw}
    # @return [Object] the handler
    # @raise [ArgumentError] it is closed, no stream socket, not connected, or a listening socket; there is no handler;
    #   or there is no room for another connection
    # @raise [IOError] the socket is closed
    def attach_fd(socket, handler)
      Raw.attach(@core, socket, handler)
    end

    # Makes a connection as {Rondo.connect} does, in this server. It may be asked for before {#run}.
    # @param url [String]
    # @param handler [Object]
    # @param options [Hash{Symbol => Object}]
    # @return [Object] the handler
    # @raise [AddressError, ArgumentError, TypeError, DialLimitError]
    def connect(url, handler:, **options)
      Outgoing.new(url, handler, options).begin(@core)
      handler
    end

    # Adopts a listening descriptor that another process opened (systemd, the process before exec).
    # @param descriptor [Integer] the server's from now on; stays the caller's if this raises
    # @param owns_file [Boolean] whether the file of a Unix socket is removed at the end
    # @param scheme [String] what is spoken there: "http", also on a Unix socket
    # @param tls [TLS::Material, nil] for "https"
    # @param app [#call, nil] as for {#listen}
    # @return [String] its address as a URL
    # @raise [AddressError] one line
    def listen_fd(descriptor, app = nil, owns_file: false, scheme: "http", tls: nil)
      address = { kind: :fd, fd: descriptor, owns_file: owns_file, scheme: scheme, tls: tls }
      open_address(address.merge(site_of(app)))[:url]
    end

    # Listeners for TLS show these certificates from their next handshake on. Connections keep those that they have.
    # @api private
    # @param materials [Array<TLS::Material>] those without a listener are left out
    # @return [void]
    # @raise [AddressError] one line: they cannot be shown
    def show_certificates(materials)
      materials.each do |material|
        @core.show_certificates(material)
        @materials.each { |url, name| @certificates[url] = TLS.shown(material) if name == material[:name] }
      end
    end

    # Closes a listening socket a moment later. No client notices it while other processes listen at its address.
    # @api private
    # @param inode [Integer] its number, whatever its descriptor is
    # @return [void]
    def retire(inode)
      @core.retire(inode)
    end

    # Names the workers of another master that get the connections of this server when it stops, instead of its
    # siblings.
    # @api private
    # @param scoreboard [Scoreboard] of those workers
    # @param inboxes [Array<Integer, nil>] descriptors by row of it; stay open as long as the server
    # @return [void]
    def name_heirs(scoreboard, inboxes)
      @core.set_heirs(scoreboard, inboxes)
    end

    # Keeps the files of Unix sockets at the end, because another process continues with {#descriptors}.
    # @api private
    # @return [void]
    def keep_files
      @core.keep_files
    end

    # @return [Array<String>] URLs of all listeners
    def addresses
      @core.addresses
    end

    # @return [Integer] how many connections there can be at once
    def connection_limit
      @core.connection_limit
    end

    # @return [Hash{String => Integer}] listening descriptors by URL, for handing them on
    attr_reader :descriptors
    # @return [Hash{String => Array<Hash>}] certificates by URL, without their keys
    attr_reader :certificates

    # Serves on this thread until stopped, then returns.
    # @raise [AddressError] when there is nothing to listen on
    # @return [void]
    def run
      raise AddressError, "the server has no address to listen on" if @needs_address && addresses.empty?

      PubSub.serve(@core) { @core.run }
    end

    # Any thread, also a trap handler.
    # @param force [Boolean] drops what is in flight instead of finishing it
    # @param drain [Boolean] accepts what waits in the queues of the sockets, and serves it
    # @param spread [Boolean] ends upgraded connections by drain_spread_ms; without, at once
    # @return [void]
    def stop(force: false, drain: true, spread: true)
      @core.stop(force, drain, spread)
    end

    # Before the process ends: what was published is sent to the hub, within a second.
    # @api private
    # @return [void]
    def finish_link
      @core.finish_link
    end

    # @return [Hash{Symbol => Integer}] gauges and counters of the scoreboard (docs/MONITORING.md, there with units);
    #   active: requests between their head and the end of their answer; waiting: calls that take none of max_threads;
    #   request_log_lost: writes of the request log that failed
    # @raise [Rondo::Error] in a process that the application forked
    def stats
      @core.stats
    end

    # What a stop waits for.
    # @return [Array(Integer), Array(Integer, String, String, Float)] how many requests, and of the one that has
    #   been in the application for longest, if any is there, method, path and seconds
    # @raise [Rondo::Error] in a process that the application forked
    def in_flight
      @core.in_flight
    end

    # @return [String] "epoll", "kqueue" or "poll"
    def poller
      @core.poller
    end

    # @api private
    # @param name [Symbol, String] that is unknown
    # @param names [Array<Symbol, String>] that are known
    # @return [String] "; did you mean …?" or ""
    def self.nearest(name, names = Settings::CORE.keys + OPTIONS)
      require "did_you_mean"
      guess = DidYouMean::SpellChecker.new(dictionary: names).correct(name).first
      guess ? "; did you mean #{guess}?" : ""
    rescue LoadError
      ""
    end

    private

    def begin_listeners
      @descriptors = {}
      @certificates = {}
      @materials = {} # their names by URL: there may be no certificate yet
    end

    # @return [Hash{Symbol => Integer}] for the core; empty: the application is that of the server
    def site_of(app)
      return {} if app.nil? || app.equal?(@app)

      number = (@sites ||= Sites.new(@core, @entrance.before(@app))).number(@entrance.before(app))
      @core.app = @sites
      { site: number }
    end

    # @return [String] the URL of the first socket
    def open_all(address)
      port = nil
      urls = Address.resolve(address).map do |each|
        each = each.merge(port: port) if port
        opened = open_address(each)
        port = opened[:port] if each[:port] == 0 # rubocop:disable Style/NumericPredicate
        opened[:url]
      end
      urls.first
    end

    def origins(allowed, numbers)
      Origins.from(allowed, fields: numbers[:trusted_proxy_fields] == 1 ? :forwarded : :x_forwarded)
    end

    def options_of_core(options, numbers)
      found = options.slice(*CORE_OPTIONS).merge(client_key(options))
      found[:upgrades] = Upgrades.new(log: @log, origins: origins(options[:allowed_origins], numbers))
      found[:split_newlines] = Rondo.rack2?
      found[:x_sendfile_roots] = sendfile_roots(options)
      found
    end

    def client_key(options)
      field = options[:client_field]
      field ? { client_field: "HTTP_#{field.upcase.tr("-", "_")}" } : {}
    end

    def sendfile_roots(options)
      folders = options[:x_sendfile_roots] || [options[:public]].compact
      folders.map { |folder| File.absolute_path(folder) }
    end

    def choose_env_extras(numbers, options)
      threads = %i[max_threads max_io_threads].sum { |name| numbers.fetch(name) { Settings::CORE[name][:default] } }
      Rondo.choose_env_extras(threads: threads, workers: options.key?(:inboxes))
    end

    def note_certificates(url, material)
      @certificates[url] = TLS.shown(material)
      @materials[url] = material[:name]
    end

    def open_address(address)
      Identity.prepare(address[:tls]) if address[:tls]
      opened = @core.listen(address)
      @descriptors[opened[:url]] = opened[:fd]
      note_certificates(opened[:url], address[:tls]) if address[:tls]
      opened
    rescue AddressError => e
      raise PortHolder.explain(e, address[:port])
    end

    def check_kinds(options)
      OPTION_TABLE.each do |name, option|
        value = options[name]
        next if value.nil? || option.test.nil?

        raise SettingError, "#{name} must be #{option.words}, not #{value.inspect}" unless option.test === value # rubocop:disable Style/CaseEquality
        next unless [*value].any? { |text| text.to_s.include?("\0") }

        raise SettingError, "#{name} has a null byte: #{value.inspect}"
      end
    end

    def check(numbers)
      numbers.each do |name, value|
        known = Settings::CORE[name] or
          raise SettingError, "unknown setting #{name}#{Server.nearest(name)}"
        numbers[name] = value = known[:unit].split("|").index(value.name) || value if value.is_a?(Symbol)
        next if value == true || value == false || value.is_a?(Integer)

        raise SettingError, "#{name} must be an Integer (#{known[:unit]}), not #{value.inspect}"
      end
      raise SettingError, "http2: this build has no HTTP/2" if numbers[:http2] && !Core.http2_library

      prepare_fibers(numbers)
    end

    def prepare_fibers(numbers)
      names = %i[fibers max_parked_bodies]
      wanted = names.map { |name| numbers.fetch(name) { Settings::CORE[name][:default] } }
      return unless wanted.all?(Integer) # the core refuses others

      FiberCount.new(*wanted).check
      Frameworks.prepare(wanted.first, @log)
    end
  end
end
