# frozen_string_literal: true

# The control server of a process. A native thread (ext/rondo/control/control.c) serves its pages from the scoreboard.
# Commands arrive here, on a Ruby thread, and the launcher or the master carries them out. docs/MONITORING.md is its
# manual.
# SPDX-License-Identifier: MIT

require "json"
require "securerandom"
require "socket"
require "rondo"
require "rondo/pubsub/outside/publications"

module Rondo
  # Opens, starts and ends the control server, and carries out its verbs.
  # @api private
  class Control
    # A method of the process for each verb; a verb whose method is missing is answered 404.
    METHODS = { "stop" => :stop, "halt" => :halt, "restart" => :restart, "phased-restart" => :phased_restart,
                "refork" => :refork, "reload-worker-directory" => :reload_worker_directory,
                "worker-count-up" => :worker_count_up, "worker-count-down" => :worker_count_down,
                "reopen-log" => :reopen_logs, "reload-certs" => :reload_certificates,
                "info" => :thread_backtraces }.freeze
    # Verbs whose answer is made here.
    OWN = %w[gc gc-stats thread-backtraces publish].freeze
    READ_ONLY = %w[gc-stats].freeze
    LONGEST_TOKEN = 512
    # What the native thread says by itself.
    REFUSED = "refused"
    REFUSAL = "! Control server: a request was refused (403): its token is wrong or missing, or a page of another " \
              "site has sent it. The number of all is in /metrics"
    TOKEN = /\A[!#-&(-\[\]-~]{1,#{LONGEST_TOKEN}}\z/
    # Where the process before left its listening socket, and a pipe with its token: "7,8=unix:///PATH".
    VARIABLE = "RONDO_CONTROL_SOCKET"
    # How long a verb that answers may take, in milliseconds.
    ANSWER_TIMEOUT_MS = 5000

    # @return [String, nil] the address as people wrote it, with the real port
    attr_reader :url
    # @return [String, nil] nil: no token is needed
    attr_reader :token

    # The control server of the settings, listening and started, or nil.
    # @param settings [Settings::Resolved] control_url, control_token, control_data_only
    # @param scoreboard [Scoreboard] what is shown
    # @param process [Object] answers the methods of {METHODS} that it can do
    # @param log [Logger]
    # @param cluster [Boolean] whether the rows of the scoreboard are workers
    # @param room [Integer] workers there may be: row i + room is of the worker of row i, too; 0: a
    #   worker for each row
    # @return [Control, nil]
    # @raise [AddressError, ConfigurationError] one line
    def self.open(settings, scoreboard, process, log:, cluster: false, room: 0)
      uri = settings[:control_url] or return drop_what_is_left

      token = token_left(settings[:control_token])
      log.note_in(scoreboard)
      control = new(scoreboard, process, log: log, token: token_of(token), cluster: cluster, room: room,
                                         data_only: settings[:control_data_only],
                                         longest: Settings.core_value(:max_publish_bytes, settings[:max_publish_bytes]))
      control.listen(uri, chosen: settings.given?(:control_token), kept: !settings[:state_path].nil?)
      control.start
      control
    rescue StandardError
      control&.close
      raise
    end

    # @param given [String, nil] nil: a random one; "none" or "": no token is needed
    # @return [String, nil]
    # @raise [ConfigurationError] it cannot be sent, or not be written to the state file
    def self.token_of(given)
      return SecureRandom.hex(16) if given.nil?
      return nil if given.empty? || given == "none"
      return given if given.match?(TOKEN)

      raise ConfigurationError,
            "control_token must be at most 512 visible ASCII characters, without quotes and backslashes"
    end

    # A restart by exec changes no random token: the next mold has been told it already.
    # @param chosen [String, nil]
    # @return [String, nil] that, or the one that {#hand_on} left
    def self.token_left(chosen)
      number = ENV[VARIABLE].to_s[/\A\d+,(\d+)=/, 1] or return chosen
      left = IO.for_fd(number.to_i, autoclose: false)
      return chosen unless left.stat.pipe? # the variable may be that of a program before

      text = left.read_nonblock(LONGEST_TOKEN + 1, exception: false)
      left.autoclose = true # without it, Ruby closes no descriptor
      left.close
      chosen || (text if text.is_a?(String) && text.match?(TOKEN))
    rescue SystemCallError, IOError
      chosen
    end
    private_class_method :token_left

    # The process before had a control server, and the settings of this one name none.
    # @return [nil]
    def self.drop_what_is_left
      socket, pipe = ENV.delete(VARIABLE).to_s[/\A(\d+,\d+)=/, 1].to_s.split(",").map(&:to_i)
      return unless pipe

      close_left(socket)
      left = IO.for_fd(pipe, autoclose: false)
      left.autoclose = true if left.stat.pipe?
      left.close
    rescue SystemCallError
      nil
    end
    private_class_method :drop_what_is_left

    # Clients find nobody there any more. The number may be that of something else: the variable, of a program before.
    # @api private
    # @param number [Integer] of a descriptor
    # @return [void]
    def self.close_left(number)
      socket = Socket.for_fd(number)
      socket.autoclose = false
      return unless socket.getsockopt(:SOCKET, :ACCEPTCONN).bool

      address = socket.local_address
      socket.autoclose = true
      socket.close
      File.unlink(address.unix_path) if address.unix? && File.socket?(address.unix_path)
    rescue SystemCallError, ArgumentError
      nil # it is no socket, or its name cannot be that of a file
    end

    # @return [String] a Unix socket of its own in the folder for temporary files
    def self.auto_uri
      require "tmpdir"
      "unix://#{File.join(Dir.tmpdir, "rondo-control-#{Process.pid}-#{SecureRandom.hex(4)}.sock")}"
    end

    # @param scoreboard [Scoreboard]
    # @param process [Object] see {METHODS}
    # @param token [String, nil]
    # @param cluster [Boolean]
    # @param room [Integer] see {Control.open}
    # @param data_only [Boolean] nothing can be asked for but numbers
    # @param log [Logger]
    # @param longest [Integer] bytes of a message that is published
    # @param answer_timeout_ms [Integer] for verbs that answer
    def initialize(scoreboard, process, token: nil, cluster: false, room: 0, data_only: false, log: Logger.errors_only,
                   longest: Publication::LONGEST, answer_timeout_ms: ANSWER_TIMEOUT_MS)
      require "rondo/status_page/page"
      @process = process
      @token = token
      @log = log
      @publications = publications(longest, answer_timeout_ms)
      @writing = Mutex.new
      @core = Core.new(scoreboard, { token: token, cluster: cluster, room: room, verbs: verbs(data_only),
                                     versions: JSON.generate(Control.versions), about: Control.labels,
                                     page: StatusDocument.html, page_policy: StatusDocument.policy,
                                     answer_timeout_ms: answer_timeout_ms })
      @lines = UNIXSocket.for_fd(@core.process_fd)
    end

    # @param uri [String] tcp://HOST:PORT, "auto", or unix:///PATH, whose file is for its owner alone
    #   unless it says ?mode=
    # @param chosen [Boolean] whether the token was configured, so that its owner knows it
    # @param kept [Boolean] whether the state file has the token
    # @raise [AddressError] cannot be listened on, or open to other machines without a token
    # @return [String] the URL
    def listen(uri, chosen: false, kept: true)
      opened = @core.listen(socket_left(uri) || address_of(uri))
      refuse(uri) if opened[:public] && !(chosen && @token)
      @asked = uri
      @chosen = chosen
      @kept = kept
      @descriptor = opened[:fd]
      @url = opened[:url].sub(/\Ahttp:/, "tcp:")
    rescue AddressError => e
      raise AddressError, "control server: #{e.message}"
    end

    # An address of its own (auto) is also for the status page inside the application, which needs no file.
    # @return [String] the line at boot
    def line
      return "* Control server on #{url} without a token" unless token
      return "* Control server on #{url}" if @chosen || @kept || @asked == "auto"

      "* Control server on #{url} (its token is random and in no file: name a state file by -S, or choose a token)"
    end

    # Shows how many connections wait in the kernel for these sockets.
    # @param descriptors [Hash{String => Integer}] listening sockets by URL
    # @param worker [Integer, nil] the slot whose worker accepts from them; nil: every worker
    # @return [void]
    def watch(descriptors, worker: nil)
      descriptors.each { |url, descriptor| @core.add_queue(url, descriptor, worker) }
    end

    # Forgets the sockets of {#watch}: to be called before they are closed.
    # @return [void]
    def unwatch
      @core.clear_queues
    end

    # Shows these certificates in place of those before.
    # @param facts [Hash{String => Array<Certificates::Facts>}] by URL of the listener
    # @return [void]
    def show_certificates(facts)
      @core.show_certificates(facts.flat_map do |url, all|
        all.map { |one| [url, one.file, JSON.generate(one.names), one.expires_at.to_i] }
      end)
    end

    # The server stops, at once or soon. It gets no new clients from those that ask whether it is ready, and verbs that
    # would begin something are refused. The process still gets them.
    # @return [void]
    def leave
      @core.leave
    end

    # @return [void]
    def start
      @thread = Thread.new { work }
      @thread.name = "rondo control"
      @core.start
    end

    # Leaves the listening socket to the program that this process becomes by exec: clients wait in
    # its queue meanwhile. A token of its owner does not go along: the next settings have it, or another. To be called
    # right before that.
    # @return [void]
    def hand_on
      kept = [IO.for_fd(@descriptor, autoclose: false).dup, pipe_of(@chosen ? "" : @token.to_s)]
      kept.each do |io|
        io.close_on_exec = false
        io.autoclose = false
      end
      ENV[VARIABLE] = "#{kept.map(&:fileno).join(",")}=#{@asked}"
      @core.keep_files
    end

    # Ends its threads, after the answers that are on their way. In a forked child it only releases its descriptors.
    # @return [void]
    def close
      @core.close
      @thread&.join(1) unless @thread == Thread.current
      @lines.close
    rescue IOError
      nil
    end

    # @return [Hash] for /stats
    def self.versions
      { rondo: VERSION, ruby: { engine: RUBY_ENGINE, version: RUBY_VERSION, patchlevel: RUBY_PATCHLEVEL } }
    end

    # @return [String] labels for /metrics
    def self.labels
      %(version="#{VERSION}",ruby="#{RUBY_ENGINE} #{RUBY_VERSION}")
    end

    private

    def publications(longest, answer_timeout_ms)
      fetch = ->(id) { @core.body(id) }
      Publications.new(Publication.new(longest: longest), answer_timeout_ms / 1000.0,
                       log: @log, fetch: fetch, reply: method(:reply))
    end

    # @return [IO] from which another process can read a short text
    def pipe_of(text)
      out, into = IO.pipe
      into.write(text)
      into.close
      out
    end

    def verbs(data_only)
      return READ_ONLY if data_only

      OWN + METHODS.select { |_, name| @process.respond_to?(name) }.keys
    end

    def address_of(uri)
      address = Address.parse(uri == "auto" ? Control.auto_uri : uri)
      raise AddressError, "cannot listen on #{uri.split("?").first}: it has no TLS of its own" if address[:tls]

      address[:kind] == :unix ? { mode: 0o600 }.merge(address) : address
    end

    # The socket that {#hand_on} left, if the address is still the same.
    def socket_left(uri)
      number, asked = ENV.delete(VARIABLE)&.split("=", 2)
      return unless number
      return { kind: :fd, fd: number.to_i, owns_file: true } if asked == uri

      Control.close_left(number.to_i)
      nil
    end

    def refuse(uri)
      raise AddressError, "#{uri} can be reached from other machines: set control_token, " \
                          "or use an address that only this machine can reach"
    end

    # One line for each verb; the native thread closes its end when it ends.
    def work
      while (line = @lines.gets)
        id, verb, more_ms = line.split
        next @publications.add(id, more_ms && (more_ms.to_i / 1000.0)) if verb == "publish"

        next @log.warn(REFUSAL) if verb == REFUSED

        result = answer(verb)
        reply(id, *result) unless id == "0"
      end
    rescue IOError, SystemCallError
      nil # closed from this side
    ensure
      @publications.close
    end

    def reply(id, status, text)
      @writing.synchronize { @lines.write("#{id} #{status} #{text.bytesize}\n", text) }
    end

    def answer(verb)
      [200, carry_out(verb)]
    rescue StandardError, NotImplementedError => e
      @log.error "control server: #{verb}: #{e.message} (#{e.class})"
      [500, "#{JSON.generate(error: "#{verb}: #{e.message}")}\n"]
    end

    def carry_out(verb)
      case verb
      when "gc" then collect_garbage
      when "gc-stats" then JSON.generate(GC.stat)
      when "thread-backtraces" then JSON.generate(backtraces)
      when "info" then @log.error(@process.thread_backtraces)
      else
        @log.say "- Control server: #{verb}"
        @process.public_send(METHODS.fetch(verb))
      end
    end

    def collect_garbage
      GC.start
      '{ "status": "ok" }'
    end

    def backtraces
      Thread.list.map { |thread| { name: thread.inspect, backtrace: thread.backtrace || [] } }
    end
  end
end
