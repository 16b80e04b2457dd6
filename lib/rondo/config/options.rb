# frozen_string_literal: true

# The settings of the shell, one row each. The command line, the configuration file, the environment,
# `rondo init`, `rondo check` and docs/CONFIGURATION.md are made from these rows, so a new setting is a
# row here and the code that obeys it. The settings of the core are the rows of
# ext/rondo/base/settings.def; CORE_NAMES says what else some of them are called.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/config/kinds"

module Rondo
  # The tables of settings.
  # @api private
  module Settings
    # A setting.
    #
    # @!attribute [r] name
    #   @return [Symbol]
    # @!attribute [r] kind
    #   @return [Symbol] key of KINDS: what it may be set to
    # @!attribute [r] default
    #   @return [Object]
    # @!attribute [r] unit
    #   @return [String]
    # @!attribute [r] doc
    #   @return [String] what it means
    # @!attribute [r] verb
    #   @return [String, nil] of the configuration file; its name without it. Where verbs.rb has a method of
    #     that name, that is the verb; the others are made from their kinds
    # @!attribute [r] flag
    #   @return [String, nil] forms of the option, "-p, --port PORT"
    # @!attribute [r] group
    #   @return [Symbol, nil] heading of `rondo --help` that the option stands under
    # @!attribute [r] help
    #   @return [String, nil] line of `rondo --help`; %s is the default
    # @!attribute [r] negation
    #   @return [String, nil] such a line for --no-…
    # @!attribute [r] env
    #   @return [Array<String>] environment variables; the first one that is set counts
    # @!attribute [r] choices
    #   @return [Array<Symbol, String>, nil] all there is to choose from
    # @!attribute [r] most
    #   @return [Integer, nil] the largest number
    # @!attribute [r] example
    #   @return [String, nil] lines of the file of `rondo init` that set it; without them its default is there
    # @!attribute [r] line
    #   @return [String, nil] the line with its default there, where it is not the verb and the value
    # @!attribute [r] server
    #   @return [Boolean] {Server#initialize} takes it under its name
    Row = Struct.new(:name, :kind, :default, :unit, :doc, :verb, :flag, :group, :help, :negation, :env, :choices,
                     :most, :example, :line, :server, keyword_init: true) do
      # @return [String, nil] name of the method of the configuration file
      def verb_name
        verb&.slice(/\A\S+/)
      end

      # @return [Array<String>] "-p", "--port PORT"
      def forms
        flag.to_s.split(", ")
      end
    end

    # What a setting of the core is called besides its name. The verb of a time takes seconds.
    CoreNames = Struct.new(:verb, :flag, :group, :help, :env, keyword_init: true) do
      # @return [Array<String>]
      def forms
        flag.to_s.split(", ")
      end
    end

    # @return [Row]
    def self.row(name, kind, default, unit, doc, verb: name.to_s, env: [], **others)
      Row.new(name: name, kind: kind, default: default, unit: unit, doc: doc, verb: verb, env: env, **others).freeze
    end
    private_class_method :row

    # @return [CoreNames]
    def self.names(verb: nil, env: [], **others)
      CoreNames.new(verb: verb, env: env, **others).freeze
    end
    private_class_method :names

    ROWS = [
      row(:bind, :addresses, nil, "URIs",
          "addresses: tcp://HOST:PORT, ssl://HOST:PORT?cert=FILE&key=FILE, unix:///PATH, or without a scheme a host, " \
          "which gets the port, HOST:PORT, or a path with a slash at its beginning or ./; if there is none, port on " \
          "all interfaces; false: none, only raw listeners, if there are any",
          flag: "-b, --bind URI", group: :where,
          help: "tcp://HOST:PORT, ssl://…, unix:///PATH, HOST; may be repeated",
          example: "bind \"tcp://0.0.0.0:9292\"\nbind \"unix:///run/app.sock?mode=0660\""),
      row(:bind_to_activated_sockets, :choice, nil, "name",
          "sockets that systemd hands over and bind does not name: besides (served, too) or only (served in place of " \
          "bind); if it is not set, they are served if there is no bind",
          choices: %i[besides only]),
      row(:listen_raw, :object, nil, "URI and block",
          "addresses whose connections are raw, and what makes the handlers of each: docs/RAW.md",
          example: 'listen_raw("tcp://0.0.0.0:7000") { Echo.new }'),
      row(:listen, :object, nil, "URI and application",
          "addresses with an application of their own each: an object, a block, or the path of a rackup file; the " \
          "folder of public is not served there",
          example: 'listen "tcp://127.0.0.1:3001", "admin.ru"'),
      row(:port, :port, 9292, "port", "port to listen on if there is no bind",
          flag: "-p, --port PORT", group: :where, help: "port on all interfaces (%s)", env: %w[PORT]),
      row(:host, :text, nil, "host",
          "host to listen on if there is no bind; if it is not set, all interfaces",
          verb: nil, env: %w[HOST BINDING]),
      row(:tls, :switch, false, "bool",
          "port is served with TLS; without a certificate it is one for development, on localhost",
          flag: "--tls, -tls", group: :where, help: "serve the port with TLS"),
      row(:tls_cert, :path, nil, "path", "PEM file with the certificate of port, which is then served with TLS",
          flag: "--cert FILE, -cert FILE, -tls-cert FILE", group: :where,
          help: "certificate of the port (TLS)", example: 'tls_cert "cert.pem"'),
      row(:tls_key, :path, nil, "path", "PEM file with the key of that certificate",
          flag: "--key FILE, -key FILE, -tls-key FILE", group: :where, help: "key of the certificate",
          example: 'tls_key "key.pem"'),
      row(:environment, :any, "development", "name",
          "environment; it decides whether clients see backtraces, and which configuration file is read",
          flag: "-e, --environment NAME", group: :where, help: "%s", env: %w[APP_ENV RACK_ENV RAILS_ENV]),
      row(:rackup, :path, "config.ru", "path", "the application's file; also the last argument"),
      row(:public, :path, nil, "path",
          "folder whose files are served without Ruby; if there is no application, nothing else is served",
          flag: "--public DIR, -www DIR", group: :where,
          help: "serve the files of this folder; no application is needed", example: 'public "public"'),
      row(:x_sendfile_root, :paths, nil, "paths",
          "folders below which the application may name files by X-Sendfile or X-Accel-Redirect; if it is not " \
          "set, the folder of public",
          flag: "--x-sendfile-root DIR", group: :where, help: "where X-Sendfile may find files; may be repeated",
          example: 'x_sendfile_root "storage"'),
      row(:sendfile_type, :choice, nil, "name",
          "which header Rack::Sendfile uses: X-Sendfile or X-Accel-Redirect",
          choices: %w[X-Sendfile X-Accel-Redirect], example: 'sendfile_type "X-Sendfile"', server: true),
      row(:workers, :workers, 0, "count",
          "worker processes; 0: one process and no master; auto: one for each CPU that this process may use",
          flag: "-w, --workers N", group: :processes, help: "worker processes; auto: one per CPU (%s)",
          env: %w[WEB_CONCURRENCY]),
      row(:preload, :switch, true, "bool",
          "load the application once, before workers are forked, instead of in each of them",
          verb: "preload_app!", flag: "--preload", group: :processes,
          help: "load the application before forking (the default)"),
      row(:worker_timeout, :seconds, 60, "s",
          "how long a worker may give no sign of life before it is killed and replaced; 0: no limit"),
      row(:worker_boot_timeout, :seconds, 60, "s",
          "how long a worker may take from its fork until it is ready; 0: no limit"),
      row(:worker_shutdown_timeout, :seconds, 30, "s", "how long a worker may take to stop before it is killed"),
      row(:worker_check_interval, :seconds, 5, "s",
          "time between two signs of life of a worker, and between two checks of its lifetime"),
      row(:mold_boot_timeout, :seconds, 300, "s",
          "how long the application may take to load before workers are forked; 0: no limit"),
      row(:worker_culling_strategy, :choice, :youngest, "name",
          "which worker ends when the number of workers is lowered: youngest or oldest", choices: %i[youngest oldest]),
      row(:max_requests, :count, 0, "count", "requests after which a worker is replaced; 0: never"),
      row(:refork_after, :count, 0, "count",
          "requests of the first worker after which all workers are replaced by new ones of the same code, once, " \
          "while they are those of the start; 0: never",
          verb: "fork_worker"),
      row(:max_memory, :size, 0, "bytes", "memory at which a worker is replaced; 0: never"),
      row(:memory_measure, :choice, :rss, "name",
          "what max_memory measures: rss, or pss, which divides shared pages among the processes",
          choices: %i[rss pss]),
      row(:max_age, :seconds, 0, "s", "age at which a worker is replaced; 0: never"),
      row(:recycle_jitter, :count, 10, "percent",
          "by how much the limits of a worker are lowered at most, at random, so that workers do not end at the " \
          "same time",
          most: 100),
      row(:idle_timeout, :seconds, 0, "s",
          "the server stops when it has served no request for so long, and has no connection but idle ones; 0: never",
          flag: "--idle-timeout SECONDS", group: :processes, help: "stop after so long without a request"),
      row(:directory, :folder, nil, "path", "working directory; the server changes to it before anything else",
          flag: "--dir DIR", group: :where, help: "working directory", example: 'directory "/srv/app"'),
      row(:restart_command, :text, nil, "command",
          "what a restart executes in place of the program that runs; its arguments follow"),
      row(:shutdown_debug, :choice, nil, "name",
          "log what all threads do when a stop begins (always), or when its time is over (on_force)",
          choices: %i[always on_force]),
      row(:drain_on_shutdown, :switch, true, "bool",
          "a server that stops still serves what waits in the queues of its sockets; without, that is refused"),
      row(:drain_delay, :seconds, 0, "s", "a server that is told to stop is not ready, and accepts for so long"),
      row(:mutate_stdout_and_stderr_to_sync_on_write, :switch, true, "bool", "standard output is not buffered"),
      row(:pidfile, :written_file, nil, "path", "file for the process id, written at boot and removed at the end",
          flag: "--pidfile FILE", group: :processes, help: "write the process id to this file", env: %w[PIDFILE],
          example: 'pidfile "tmp/pids/server.pid"'),
      row(:state_path, :written_file, nil, "path", "file for the process id and the addresses as YAML, for tools",
          flag: "-S, --state FILE", group: :processes, help: "write process id and addresses to this file",
          example: 'state_path "tmp/pids/server.state"'),
      row(:state_permission, :permission, nil, "mode",
          "permission of that file; if it is not set, as the umask says, and only for its owner if it has a token",
          example: "state_permission 0640"),
      row(:control_url, :text, nil, "URI",
          "where the control server listens: tcp://HOST:PORT, unix:///PATH, or auto for a socket of its own",
          verb: "activate_control_app", flag: "--control-url URI", group: :processes,
          help: "control server: tcp://, unix://, auto"),
      row(:control_token, :text, nil, "text",
          "token that clients of the control server must send; if it is not set, a random one is written to the " \
          "state file; none: no token is needed",
          verb: "activate_control_app", flag: "--control-token TOKEN", group: :processes,
          help: "token of the control server; none: no token is needed"),
      row(:control_data_only, :switch, false, "bool", "the control server shows pages and refuses commands",
          verb: "activate_control_app", example: 'activate_control_app "auto", data_only: false'),
      row(:metrics_to, :choice, nil, "name",
          "where the numbers of /metrics are sent: statsd, by the gem statsd-instrument, or opentelemetry, by the " \
          "gem opentelemetry-exporter-otlp-metrics",
          choices: %i[statsd opentelemetry], example: "metrics_to :statsd"),
      row(:metrics_interval, :seconds, 10, "s", "time between two such sendings; at least 1"),
      row(:tag, :any, nil, "text", "name of this server in the process list; if it is not set, the name of its folder",
          flag: "--tag NAME", group: :processes, help: "name in the process list", example: 'tag "app"'),
      row(:log_requests, :switch, false, "bool",
          "log each request on standard output, except those that the static folder answers",
          flag: "-v, --log-requests", group: :logs, help: "log each request on standard output"),
      row(:request_log_output, :choice, "stdout", "name", "where the lines of log_requests go: stdout or stderr",
          choices: %w[stdout stderr]),
      row(:quiet, :switch, false, "bool", "no boot lines", flag: "-q, --quiet", group: :logs, help: "no boot lines"),
      row(:silent, :switch, false, "bool", "nothing but errors",
          flag: "-s, --silent", group: :logs, help: "nothing but errors"),
      row(:log_format, :choice, :common, "name", "format of request lines and log lines: common or json",
          choices: %i[common json]),
      row(:request_ids, :choice, nil, "name",
          "whether lines of the log about a request show its X-Request-Id and its trace context (traceparent): pass, " \
          "those that came with it, or make, which also gives an X-Request-Id to a request without one",
          choices: %i[pass make], example: "request_ids :make", server: true),
      row(:log_time, :choice, :auto, "name",
          "whether log lines begin with the time, and in a worker with its number: always, never, or auto, which is " \
          "in files and pipes, and not on a terminal or in systemd's journal",
          choices: %i[auto always never], env: %w[RONDO_LOG_TIME]),
      row(:log_formatter, :object, nil, "block", "called with each log line; what it returns is written",
          example: "log_formatter { |line| \"\#{Time.now.utc} \#{line}\" }"),
      row(:custom_logger, :object, nil, "object", "gets the log lines; responds to info, warn and error, or to write"),
      row(:redirect_stdout, :written_file, nil, "path", "file for standard output",
          verb: "stdout_redirect", flag: "--redirect-stdout FILE", group: :logs, help: "standard output to a file",
          example: 'stdout_redirect "log/requests.log", "log/server.log", true'),
      row(:redirect_stderr, :written_file, nil, "path", "file for standard error",
          verb: "stdout_redirect", flag: "--redirect-stderr FILE", group: :logs, help: "standard error to a file"),
      row(:redirect_append, :switch, false, "bool", "append to the redirect files instead of emptying them",
          verb: "stdout_redirect", flag: "--redirect-append", group: :logs, help: "append to those files",
          negation: "empty those files at the start", line: "stdout_redirect nil, nil, false"),
      row(:tls_domain, :names, nil, "names",
          "hosts for which certificates are fetched from an ACME server and renewed; tls_port and tls_http_port " \
          "are bound",
          flag: "--tls-domain NAME", group: :where, env: %w[RONDO_TLS_DOMAIN],
          help: "fetch a certificate for this host; more: rondo cert --help", example: 'tls_domain "www.example.com"'),
      row(:tls_email, :text, nil, "address", "where the ACME server may write to",
          flag: "--tls-email ADDRESS", group: :certificates, env: %w[RONDO_TLS_EMAIL],
          help: "address for the ACME server", example: 'tls_email "ops@example.com"'),
      row(:tls_directory, :text, "https://acme-v02.api.letsencrypt.org/directory", "URL",
          "directory of the ACME server; the default is Let's Encrypt's",
          flag: "--tls-directory URL", group: :certificates, env: %w[RONDO_TLS_DIRECTORY],
          help: "another ACME server than Let's Encrypt"),
      row(:tls_directory_ca, :path, nil, "path", "PEM file: who signed the certificate of the ACME server itself",
          flag: "--tls-directory-ca FILE", group: :certificates, env: %w[RONDO_TLS_DIRECTORY_CA],
          help: "authority of the ACME server itself", example: 'tls_directory_ca "ca.pem"'),
      row(:tls_eab_kid, :text, nil, "text", "name of an account at the ACME server's owner (external account binding)",
          flag: "--tls-eab-kid ID", group: :certificates, env: %w[RONDO_TLS_EAB_KID],
          help: "external account at the ACME server", example: 'tls_eab_kid "kid-1"'),
      row(:tls_eab_key_file, :path, nil, "path",
          "file with the key of that account in base64url; without it the variable RONDO_TLS_EAB_KEY has the key",
          flag: "--tls-eab-key-file FILE", group: :certificates, env: %w[RONDO_TLS_EAB_KEY_FILE],
          help: "its key; else in RONDO_TLS_EAB_KEY", example: 'tls_eab_key_file "eab.key"'),
      row(:tls_storage, :path, nil, "path",
          "folder for keys and certificates; if it is not set, rondo/acme in XDG_STATE_HOME, or acme in systemd's " \
          "STATE_DIRECTORY",
          flag: "--tls-storage DIR", group: :certificates, env: %w[RONDO_TLS_STORAGE],
          help: "folder for keys and certificates", example: 'tls_storage "/var/lib/app/acme"'),
      row(:tls_port, :port, 443, "port", "port for TLS if there is a tls_domain",
          flag: "--tls-port PORT", group: :certificates, env: %w[RONDO_TLS_PORT],
          help: "port for TLS with --tls-domain (%s)"),
      row(:tls_http_port, :port, 80, "port",
          "port for tokens of the ACME server and redirects to https, if there is a tls_domain; 0: none",
          flag: "--tls-http-port PORT", group: :certificates, env: %w[RONDO_TLS_HTTP_PORT],
          help: "port for tokens and redirects (%s); 0: none"),
      row(:tls_agree, :switch, true, "bool", "agree to the terms of service of the ACME server",
          flag: "--tls-agree", group: :certificates, help: "agree to the ACME server's terms (the default)",
          negation: "do not agree"),
      row(:trusted_proxies, :addresses, [].freeze, "networks",
          "peers that may name the client, in the fields that trusted_proxy_fields names; unix: every peer of a Unix " \
          "socket",
          example: 'trusted_proxies ["10.0.0.0/8", "unix"]', server: true),
      row(:proxy_protocol_from, :addresses, [].freeze, "networks",
          "peers whose connections begin with a PROXY protocol header, version 1 or 2; unix: every peer of a " \
          "Unix socket",
          example: 'proxy_protocol_from ["10.0.0.1"]', server: true),
      row(:proxy_protocol_optional, :switch, false, "bool",
          "a connection of these peers may also begin without that header; then the peer is the client",
          server: true),
      row(:client_field, :text, nil, "field",
          "field in which trusted_proxies name the client, instead of X-Forwarded-For; without trusted_proxies every " \
          "peer is believed",
          verb: "set_remote_address", example: 'set_remote_address header: "X-Real-IP"', server: true),
      row(:client_address, :text, nil, "address", "REMOTE_ADDR of every request, whoever sends it",
          verb: "set_remote_address", example: "set_remote_address :localhost", server: true),
      row(:allowed_methods, :object, nil, "names",
          "methods that the application gets; a request with another one is answered 501; if it is not set, all",
          verb: "supported_http_methods", example: "supported_http_methods %w[GET HEAD POST]", server: true),
      row(:fiber_each, :switch, false, "bool",
          "each request finds a fiber without variables of earlier requests; with fibers that is so anyway",
          verb: "fiber_per_request", server: true),
      row(:url_scheme, :choice, nil, "name", "rack.url_scheme of every request, instead of that of its connection",
          verb: "rack_url_scheme", choices: %w[http https], example: 'rack_url_scheme "https"', server: true),
      row(:default_host, :text, nil, "host:port", "SERVER_NAME and SERVER_PORT of requests without Host",
          verb: "server_name", example: 'server_name "localhost:9292"', server: true),
      row(:allowed_origins, :object, nil, "origins",
          "origins whose pages may open a WebSocket: :same, https://www.example.com, https://*.example.com, or a " \
          "block that is called with env; if it is not set, every origin",
          example: 'allowed_origins :same, "https://*.example.com"', server: true),
      row(:lowlevel_error_handler, :object, nil, "block",
          "called with error, env and status when the application raises; returns a response",
          example: "lowlevel_error_handler { |error, _env, status| [status, {}, [error.class.name]] }", server: true),
      row(:debug, :switch, false, "bool",
          "show the server's own frames in backtraces of an application that does not boot"),
      row(:raise_exception_on_sigterm, :switch, true, "bool", "after TERM, end with the status of SIGTERM"),
      row(:redis_url, :text, nil, "URL",
          "Redis that carries published messages to other machines: redis://USER:PASSWORD@HOST:PORT/DATABASE, " \
          "rediss:// for TLS, unix:///PATH, redis+sentinel://HOST,HOST/MASTER, redis+cluster://HOST,HOST",
          flag: "-r, --redis URL", group: :processes, help: "pub/sub between machines",
          env: %w[RONDO_REDIS_URL REDIS_URL], example: 'redis_url "redis://localhost:6379"'),
      row(:redis_streams, :text, nil, "URL",
          "the same, and this Redis keeps the messages of channels with a history: clients resume at any server",
          flag: "--redis-streams URL", group: :processes, help: "pub/sub between machines, with resume",
          env: %w[RONDO_REDIS_STREAMS], example: 'redis_streams "redis://localhost:6379"'),
      row(:redis_prefix, :text, nil, "text",
          "with redis_streams, of all names in that Redis; each application in one Redis has its own",
          example: 'redis_prefix "shop"'),
      row(:redis_required, :switch, false, "bool",
          "do not start without that Redis, instead of trying to reach it again and again"),
      row(:nats, :nats, nil, "URL and options",
          "NATS that carries published messages to other machines, and may keep those of a history: docs/NATS.md",
          env: %w[RONDO_NATS], example: 'nats "nats://localhost:4222", jetstream: true'),
      row(:pubsub_engine, :object, nil, "block",
          "makes the default engine of pub/sub, in the process that was started (the master, if there is one)",
          example: 'pubsub_engine { Rondo::PubSub::Redis.new("rediss://redis.example", ' \
                   'ssl_params: { ca_file: "ca.pem" }) }'),
      row(:signing_secret, :secrets, nil, "secrets",
          "for signed names of channels, of 16 bytes or more, in the variable with blanks between: the first one signs",
          env: %w[RONDO_SIGNING_SECRET], example: 'signing_secret "what openssl rand -hex 32 says"'),
      row(:puma_env, :switch, false, "bool",
          "each env has the keys of Puma's (docs/PUMA.md); if it is not set: where the module Puma is loaded when " \
          "the server starts, or with max_io_threads"),
      row(:tmp_restart, :switch, false, "bool", "restart when tmp/restart.txt is touched",
          verb: "plugin :tmp_restart", example: "plugin :tmp_restart")
    ].freeze

    SHELL = ROWS.to_h { |row| [row.name, row] }.freeze

    CORE_NAMES = {
      head_timeout_ms: names(verb: :first_data_timeout),
      keep_alive_timeout_ms: names(verb: :persistent_timeout, flag: "-k, --keep-alive SECONDS", group: :limits,
                                   help: "idle connections (%s)", env: %w[PUMA_PERSISTENT_TIMEOUT]),
      body_timeout_ms: names(verb: :body_timeout),
      write_timeout_ms: names(verb: :write_timeout),
      drain_timeout_ms: names(verb: :drain_timeout),
      drain_spread_ms: names(verb: :drain_spread),
      hard_request_timeout_ms: names(verb: :hard_request_timeout),
      max_body_bytes: names(verb: :http_content_length_limit, flag: "--max-body SIZE, -maxbd SIZE", group: :limits,
                            help: "request body, also -maxbd (%s)"),
      max_head_bytes: names(flag: "--max-head SIZE, -maxhd SIZE", group: :limits,
                            help: "request head, also -maxhd (%s)"),
      keep_alive: names(verb: :enable_keep_alives),
      early_hints: names(flag: "--early-hints", group: :limits, help: "offer rack.early_hints"),
      max_threads: names(env: %w[RAILS_MAX_THREADS MAX_THREADS PUMA_MAX_THREADS]),
      min_threads: names(env: %w[MIN_THREADS PUMA_MIN_THREADS]),
      fibers: names(flag: "--fibers N", group: :processes, help: "calls at once, each in a fiber (%s: none)",
                    env: %w[RONDO_FIBERS])
    }.freeze
  end
end
