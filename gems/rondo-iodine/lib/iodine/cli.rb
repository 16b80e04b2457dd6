# frozen_string_literal: true

# The command: iodine's options and units, and what is loaded. Only it reads ARGV.
# SPDX-License-Identifier: MIT

module Iodine
  # @api private
  module Base
    # Options of the command `iodine`.
    module CLI
      # An option: what DEFAULT_SETTINGS calls it, its names, and what follows it.
      Option = Struct.new(:name, :names, :kind, :help)

      # Raised for what the command cannot use.
      class Unknown < StandardError; end

      OPTIONS = [
        ["Address Binding:"],
        [:address, %w[-bind -b -address], :text, "address to listen to. defaults to any available."],
        [:port, %w[-port -p], :number, "port number to listen to. defaults port 3000"],
        ["Concurrency:"],
        [:threads, %w[-threads -t], :number, "number of threads per process; below zero, a part of the CPUs."],
        [:workers, %w[-workers -w], :number, "number of processes to use; below zero, a part of the CPUs."],
        ["HTTP Settings:"],
        [:public, %w[-public -www], :text, "public folder, for static file service."],
        [:timeout, %w[-keep-alive -k -tout], :number, "HTTP keep-alive timeout in seconds (0..255). Default: 40s"],
        [:log, %w[-log -v], :switch, "HTTP request logging."],
        [:max_body, %w[-max-body -maxbd], :number, "HTTP upload limit in Mega-Bytes. Default: 50Mb"],
        [:max_headers, %w[-max-header -maxhd], :number, "header limit per HTTP request in Kb. Default: 32Kb."],
        ["WebSocket Settings:"],
        [:max_msg, %w[-max-msg -maxms], :number, "incoming WebSocket message limit in Kb. Default: 250Kb"],
        [:ping, %w[-ping], :number, "websocket ping interval (1..255). Default: 40s"],
        ["SSL/TLS:"],
        [:tls, %w[-tls], :switch, "enable SSL/TLS using a self-signed certificate."],
        [:tls_cert, %w[-tls-cert -cert], :text, "the SSL/TLS public certificate file name."],
        [:tls_key, %w[-tls-key -key], :text, "the SSL/TLS private key file name."],
        [:tls_pass, %w[-tls-pass -tls-password], :text, "the password (if any) protecting the private key file."],
        ["Connecting Iodine to Redis:"],
        [:redis_, %w[-redis -r], :text, "an optional Redis URL server address. Default: none."],
        [:redis_ping_, %w[-redis-ping -rp], :number, "websocket ping interval (0..255). Default: 300s"],
        ["Misc:"],
        [:conf_, %w[-config -C], :text, "configuration file to be loaded."],
        [:pid_, %w[-pid -pidfile], :text, "name for the pid file to be created."],
        [:verbosity, %w[-verbosity -V], :number, "0..5 server verbosity level. Default: 4"],
        [:warmup_, %w[-warmup --preload], :switch, "warm up the application. CAREFUL! with workers."]
      ].map { |row| row.size == 1 ? row.first : Option.new(*row).freeze }.freeze

      ALIASES = OPTIONS.grep(Option).flat_map { |option| option.names.map { |name| [name, option] } }.to_h.freeze
      # The port is a String there, as iodine has it.
      NUMBERS = OPTIONS.grep(Option).select { |option| option.kind == :number }.map(&:name) - %i[port]
      HELP = %w[-? -h -help --help].freeze

      class << self
        # Takes ARGV over into {DEFAULT_SETTINGS}.
        # @return [void]
        def parse(words = ARGV)
          take(read(words.dup))
        rescue Unknown => e
          warn "\nError: unknown argument #{e.message}\n"
          help
        end

        # What is open after the command line gets iodine's defaults.
        # @return [void]
        def complete
          DEFAULT_SETTINGS[:port] ||= ENV["PORT"] || "3000"
          DEFAULT_SETTINGS[:address] ||= nil
          url = DEFAULT_SETTINGS[:redis_]
          PubSub.default = PubSub::Redis.new(url, ping: DEFAULT_SETTINGS[:redis_ping_]) if url
          path = DEFAULT_SETTINGS.delete(:pid_)
          keep_pid(path) if path
          file = DEFAULT_SETTINGS.delete(:conf_)
          Kernel.require(file) if file
        end

        # Loads the application and serves it.
        # @return [void]
        def run
          Iodine::Rack.run(application)
        rescue Rondo::Error, RuntimeError => e
          abort "iodine: #{e.message.lines.first.to_s.chomp}"
        end

        private

        # @return [Hash{Symbol => String, true}]
        def read(words)
          found = {}
          until words.empty?
            word = words.shift
            name = longest(word)
            next unnamed(found, word) unless name

            value = value_of(ALIASES[name], word.delete_prefix(name), words)
            found[ALIASES[name].name] = value unless value.nil?
          end
          found
        end

        # `-p3000`, `-p=3000` and `-p 3000` are the same.
        def longest(word)
          word.size.downto(2).map { |size| word[0, size] }.find { |start| ALIASES.key?(start) }
        end

        def unnamed(found, word)
          help if HELP.include?(word.downcase)
          found[:filename_] ||= word
        end

        def value_of(option, rest, words)
          if option.kind == :switch
            raise Unknown, "#{option.names.first} with value #{rest}" unless rest.empty?

            return true
          end
          value = rest.empty? ? words.shift : rest.delete_prefix("=")
          raise Unknown, "#{option.names.first} with value (null)" if value.nil?
          raise Unknown, "#{option.names.first} with value #{value}" if option.kind == :number && !number?(value)

          value unless value.empty?
        end

        def number?(text)
          text.empty? || text.match?(/\A[+-]?(?:\d+|0x\h+|0b[01]+)\z/i)
        end

        def take(found)
          level = found[:verbosity].to_i
          Iodine.verbosity = level if found[:verbosity] && level.between?(0, 99)
          workers = found[:workers] || ENV["WEB_CONCURRENCY"] || ENV.fetch("WORKERS", nil)
          threads = found[:threads] || ENV.fetch("THREADS", nil)
          Iodine.workers = workers.to_i if workers
          Iodine.threads = threads.to_i if threads
          found[:redis_] ||= ENV["IODINE_REDIS_URL"] if ENV.key?("IODINE_REDIS_URL")
          secure(found)
          place(found)
          found.except(:verbosity, :workers, :threads).each do |name, value|
            DEFAULT_SETTINGS[name] = NUMBERS.include?(name) ? value.to_i : value
          end
        end

        def place(found)
          address = found[:address] or return
          return unless address.start_with?("/", "./")

          if found[:port] && found[:port] != "0"
            Base.warning("Detected a Unix socket binding (-b) conflicting with port.\n            " \
                         "Port settings (-p #{found[:port]}) are ignored")
          end
          found[:port] = "0"
        end

        def secure(found)
          wanted = found.delete(:tls)
          certificate, key, password = %i[tls_cert tls_key tls_pass].map { |name| found.delete(name) }
          return unless wanted || certificate || key

          tls = TLS.new
          if certificate && key
            tls.use_certificate(certificate: certificate, private_key: key, password: password)
          else
            Base.error("TLS support requires both key and certificate.") unless wanted
            tls.use_certificate(server_name: "localhost")
          end
          found[:tls] = tls
        end

        # The server writes it, so it is right after a restart, too.
        def keep_pid(path)
          path += "iodine.pid" if path.end_with?("/")
          if File.exist?(path) && !File.file?(path)
            raise "pid filename shold point to a valid file name (not a folder)!"
          end

          Setup.pidfile = path
        end

        # ---- the application ----

        def application
          name = DEFAULT_SETTINGS[:filename_]
          found = name && [name, "#{name}.ru"].find { |path| File.file?(path) }
          puts "* Couldn't find #{name}\n  testing for config.ru\n" if name && !found
          found ||= "config.ru" if File.file?("config.ru")
          return load_application(found) if found

          without_application(name)
        end

        def load_application(path)
          Kernel.require "rack"
          Kernel.require "rack/builder"
          app = ::Rack::Builder.parse_file(path)
          app.is_a?(Array) ? app.first : app
        end

        def without_application(name)
          warn "WARNING: Ruby application not found#{" - missing both #{name} and config.ru" if name}" \
               "#{" - missing config.ru" unless name}."
          if DEFAULT_SETTINGS[:public]
            warn "         Running only static file service."
            return ->(_env) { [404, {}, ["Not Found!"]] }
          end
          warn "\nERROR: Couldn't run Ruby application, check command line arguments."
          help
        end

        def help
          lines = OPTIONS.map do |row|
            next "\n#{row}" if row.is_a?(String)

            format(" %<names>-34s %<help>s", names: row.names.join(" "), help: row.help)
          end
          warn "\nIodine's HTTP/WebSocket server version #{VERSION} on Rondo #{Rondo::VERSION}\n\nUse:\n    " \
               "iodine <options> <filename>\n\nBoth <options> and <filename> are optional.\n#{lines.join("\n")}\n\n" \
               "Use any of the following input formats:\n\t-arg <value>\t-arg=<value>\t-arg<value>\n\n"
          exit(0)
        end
      end
    end
  end
end
