# frozen_string_literal: true

# Listening sockets from outside: systemd's (LISTEN_FDS, sd_listen_fds(3)) and those of the process
# that this one replaced by exec, or that it hands on so. Also systemd's notifications (sd_notify(3)).
# SPDX-License-Identifier: MIT

require "socket"
require "rondo/boot/ticket_keys"

module Rondo
  # Descriptors to adopt instead of binding.
  # @api private
  class Inherited
    VARIABLE = "RONDO_INHERITED"
    # The number of a sealed file with what the process before showed on its ports for TLS.
    CERTIFICATES = "RONDO_CERTIFICATES"
    FIRST_SYSTEMD_FD = 3

    # What the environment offers; the variables are removed, and the descriptors closed by exec, so that
    # children do not take it too.
    # @return [Inherited]
    def self.extract(env = ENV)
      own, foreign, redirects = from_predecessor(env)
      foreign += from_systemd(env)
      new(own + redirects, foreign, redirects: redirects.map(&:last), materials: materials_left(env))
    end

    # Closes by exec what was left for this process. It is called when Rondo is loaded. What this process starts before
    # {extract} must not have keys, and must not keep a port when the server has left it.
    # @return [void]
    def self.withhold(env = ENV)
      keys = env.values_at(CERTIFICATES, TicketKeys::VARIABLE).compact
      keys.each { |number| withhold_one(number) { |io| [TLS.sealed?(io)] } } # raises for what is not ours
      numbers = env[VARIABLE].to_s.scan(/(?:\A|,)(\d+)[=~+]/).flatten
      numbers.each { |number| withhold_one(number) { |io| listening?(io) } }
      env["RONDO_CONTROL_SOCKET"].to_s[/\A[\d,]+(?==)/].to_s.split(",").each do |number|
        withhold_one(number) { |io| io.stat.pipe? || listening?(io) } # the pipe has the token
      end
      withhold_one(env["RONDO_MOLD"].split(":")[1]) if mold?(env)
    end

    # Programs that a mold has started before it served have the variable, too, but not the descriptor.
    # @return [Boolean] whether a master started this process as a mold
    def self.mold?(env = ENV)
      env["RONDO_MOLD"].to_s.split(":")[3] == Process.ppid.to_s
    end

    def self.withhold_one(number)
      io = IO.for_fd(Integer(number, 10), autoclose: false)
      io.close_on_exec = true if !block_given? || yield(io)
    rescue SystemCallError, ArgumentError
      nil
    end
    private_class_method :withhold_one

    def self.listening?(io)
      socket = BasicSocket.for_fd(io.fileno)
      socket.autoclose = false
      socket.getsockopt(:SOCKET, :ACCEPTCONN).bool
    end
    private_class_method :listening?

    # @param descriptors [Enumerable<Array(String, Integer)>] with their URLs
    # @return [Array<Array(String, IO)>] duplicates that stay open across exec
    def self.hand_on(descriptors)
      descriptors.map do |url, descriptor|
        copy = IO.for_fd(descriptor, autoclose: false).dup
        copy.close_on_exec = false
        [url, copy]
      end
    end

    # The command that started this process. Its words come from the system, because Ruby's own options are not in
    # ARGV. The folder is the one that the shell named, because a symbolic link may lead elsewhere later. Call this
    # before the title of the process is set, which overwrites the words.
    # @return [Hash{Symbol => Object}] words and folder
    def self.command
      words = File.read("/proc/self/cmdline").split("\0", -1)[0...-1]
      words = words_of_title(words) || words
      folder = ENV["PWD"].to_s
      { words: words, folder: File.identical?(folder, ".") ? folder : Dir.pwd }
    rescue SystemCallError
      { words: [RbConfig.ruby, $PROGRAM_NAME, *ARGV], folder: Dir.pwd }
    end

    # @param command [Hash] of {command}
    # @param text [String, nil] the setting `restart_command`
    # @return [Hash] the command of a restart
    def self.command_of_restart(command, text)
      return command if text.nil?

      { **command, words: [*text.split, *ARGV] }
    end

    # `bundle exec PATH` loads the program into Bundler's own process, and gives that a title in place of its words: the
    # path and what follows it, joined by blanks. What of that is still in ARGV may have blanks of its own.
    # @return [Array<String>, nil] nil: there are words
    def self.words_of_title(words)
      title, *rest = words
      return unless title&.start_with?($PROGRAM_NAME) && rest.all?(&:empty?)

      given = title.delete_prefix($PROGRAM_NAME)
      [RbConfig.ruby, $PROGRAM_NAME, *given.delete_suffix(ARGV.join(" ")).split, *ARGV]
    end
    private_class_method :words_of_title

    # Signals that would end a program that does not expect them yet.
    EARLY = (%w[HUP USR1 TTIN TTOU] + (ENV["PUMA_SKIP_SIGUSR2"] ? [] : %w[USR2])).intersection(Signal.list.keys).freeze

    # Replaces this process by a new one with the same command line. Until that one is there, the signals
    # of EARLY do nothing; those that stop a server do. The caller has not given the former back: that would
    # end or halt this process.
    # @param command [Hash] of {command}
    # @param ios [Array<Array(String, IO)>]
    # @param foreign [Array<String>] URLs of sockets that systemd opened
    # @param redirects [Array<String>] URLs of sockets that never serve the application
    # @param more [Hash{String => String}] further variables
    # @param keep [Array<IO>] further descriptors that stay open
    # @param materials [Array<TLS::Material>] shown on the sockets; the next process reads its files, and needs these if
    #   somebody has written half of them
    # @raise [Error] one line
    def self.exec_again(command, ios, foreign: [], redirects: [], more: {}, keep: [], materials: [])
      left = TLS.hand_on(materials)
      keep, more = [*keep, left], { **more, CERTIFICATES => left.fileno.to_s } if left
      kinds = [*foreign.product(["~"]), *redirects.product(["+"])].to_h
      list = ios.map { |url, io| "#{io.fileno}#{kinds.fetch(url, "=")}#{url}" }.join(",")
      kept = [*ios.map(&:last), *keep].to_h { |io| [io.fileno, io.fileno] }
      Dir.chdir(command[:folder])
      EARLY.each { |name| trap(name, "IGNORE") }
      exec({ VARIABLE => list, **more }, *command[:words], kept)
    rescue SystemCallError => e
      left&.close
      raise Error, "cannot restart: #{e.message}"
    end

    # Does not wait: a reader that is not ready misses the message.
    # @param state [String] READY=1, STOPPING=1, …
    # @return [void]
    def self.notify(state, env = ENV)
      path = env["NOTIFY_SOCKET"]
      return if path.to_s.empty? || env["PUMA_SKIP_SYSTEMD"]

      socket = Socket.new(:UNIX, :DGRAM)
      socket.connect(Addrinfo.unix(path.sub(/\A@/, "\0")))
      socket.sendmsg_nonblock(state, exception: false)
    rescue SystemCallError, ArgumentError
      nil # there is no listener, or this is not an address
    ensure
      socket&.close
    end

    # @return [Array(Array, Array, Array)] those the predecessor opened, those systemd gave it, and its redirects
    def self.from_predecessor(env)
      entries = env.delete(VARIABLE).to_s.split(",").map { |entry| entry.match(/\A(\d+)([=~+])(.*)\z/).captures }
      %w[= ~ +].map do |wanted|
        some = entries.select { |_, kind, _| kind == wanted }
        some.map { |number, _, url| [Address.uri_of(url), number.to_i] }
      end
    end
    private_class_method :from_predecessor

    def self.from_systemd(env)
      count = env["LISTEN_PID"].to_i == Process.pid ? env["LISTEN_FDS"].to_i : 0
      %w[LISTEN_PID LISTEN_FDS LISTEN_FDNAMES].each { |name| env.delete(name) } if count.positive?
      Array.new(count) { |index| FIRST_SYSTEMD_FD + index }.map { |number| [uri_of(number), number] }
    end
    private_class_method :from_systemd

    # Another kind of descriptor is not ours, and stays as it is. What another version has written in another way is not
    # used: then the files have to be right.
    def self.materials_left(env)
      number = env.delete(CERTIFICATES) or return []
      io = IO.for_fd(Integer(number, 10), autoclose: false)
      return [] unless TLS.sealed?(io)

      io.autoclose = true # or its close would leave keys open for every child
      TLS.take(io).compact
    rescue SystemCallError, TLS::Refused, ArgumentError
      []
    end
    private_class_method :materials_left

    # @param descriptor [Integer] a listening socket
    # @return [String]
    # @raise [AddressError] it is not a listening socket
    def self.uri_of(descriptor)
      address = BasicSocket.for_fd(descriptor).tap { |socket| socket.autoclose = false }.local_address
      return "unix://#{address.unix_path.sub(/\A\0/, "@")}" if address.unix?

      Address.tcp_uri(address.ip_address, address.ip_port)
    rescue SystemCallError
      raise AddressError, "descriptor #{descriptor} of LISTEN_FDS is not a listening socket"
    end

    # @param own [Enumerable<Array(String, Integer)>] URIs and descriptors; a URI may be there more
    #   than once, with the sockets of several workers
    # @param foreign [Enumerable<Array(String, Integer)>] those whose files are not ours to remove
    # @param redirects [Array<Integer>] descriptors of `own` that never serve the application
    # @param materials [Array<TLS::Material>] shown there so far
    def initialize(own, foreign = [], redirects: [], materials: [])
      @materials = materials
      @redirects = redirects
      @own = own.map(&:last)
      @descriptors = [*own, *foreign]
      @used = []
      @descriptors.map(&:last).each { |number| close_on_exec(number) }
    end

    # @param descriptor [Integer]
    # @return [Boolean] whether we, in an earlier life, opened it
    def own?(descriptor)
      @own.include?(descriptor)
    end

    # @return [Boolean]
    def any?
      @descriptors.any?
    end

    # @param special [Array<String>] URIs of {Binds.special}
    # @return [Array<String>] what else there is; neither a special listener nor one of redirects becomes another one
    def uris(special = [])
      others(special).map(&:first).uniq
    end

    # @param special [Array<String>] URIs of {Binds.special}
    # @return [Array<String>] what else systemd opened
    def foreign_uris(special = [])
      others(special).reject { |_, number| own?(number) }.map(&:first).uniq
    end

    # @param uri [String]
    # @return [Array<Integer>] one for each address the URI stands for, or none at all
    def descriptors_for(uri)
      alike, others = @descriptors.partition { |known, _| Address.mark(known) == Address.mark(uri) }
      found = Address.resolve(Address.parse(uri)).map do |address|
        [*alike, *others].find { |known, number| !@used.include?(number) && same_place?(known, number, address) }
      end
      return [] unless found.all?

      found.map(&:last).each { |number| @used << number }
    end

    # @param descriptor [Integer] one of {#descriptors_for}
    # @return [Array<Integer>] the rest at the very same address
    def siblings_of(descriptor)
      uri, = @descriptors.find { |_, number| number == descriptor }
      rest = @descriptors.select { |known, number| known == uri && !@used.include?(number) }
      rest.map(&:last).each { |number| @used << number }
    end

    # Reads the certificates and keys of an address for TLS. If they cannot be used, those stay that the process before
    # showed for the same words.
    # @param uri [String]
    # @yieldparam line [String] what is wrong with them, for the log
    # @return [TLS::Material, nil] nil for any other address
    # @raise [AddressError] one line
    def read_tls(uri, &note)
      address = Address.parse(uri)
      return unless address[:tls]

      before = @materials.find { |material| material[:name] == TLS.name(address[:tls]) }
      found = Address.read_tls(uri, address, &note)[:tls]
      TLS.check(found) if before
      TLS.carry_over(found, before)
    rescue AddressError => e
      raise unless before

      note.call TLS.complaint(before[:address], e)
      before
    end

    # Closes the sockets that were not taken, so that no queue fills up unseen.
    # @return [void]
    def close_rest
      (@descriptors.map(&:last) - @used).each { |number| IO.for_fd(number).close }
    end

    private

    def others(special)
      places = special.flat_map { |uri| Address.resolve(Address.parse(uri)) }
      @descriptors.reject do |known, number|
        Address.raw?(known) || Address.app?(known) || @redirects.include?(number) ||
          places.any? { |place| same_place?(known, number, place) }
      end
    end

    def close_on_exec(number)
      IO.for_fd(number, autoclose: false).close_on_exec = true
    rescue SystemCallError, ArgumentError
      nil # the code that listens on it reports the error
    end

    # If the URI has port 0, the predecessor got a real port for it. The process that binds the port knows its scheme.
    def same_place?(uri, number, wanted)
      known = Address.place(uri)
      return false if nameless?(known)

      known[:port] = 0 if wanted[:port]&.zero? && own?(number)
      %i[kind host port path].all? { |part| known[part] == wanted[part] }
    end

    # A socket whose file was removed: no client can find it, so the address is bound again.
    def nameless?(address)
      address[:kind] == :unix && !address[:path].start_with?("@") && !File.socket?(address[:path])
    end
  end

  # The listening sockets of one process without workers, from the begin of a restart until the next program has them,
  # or until a stop has won over the restart. They are open meanwhile, so that clients wait in the kernel's queue. The
  # threads of signals and of the server use it.
  # @api private
  class HandedOn
    # @param descriptors [Array<Array(String, Integer)>] with their URLs
    # @param foreign [Array<String>] URLs of those whose files are not ours to remove
    def initialize(descriptors, foreign)
      @mutex = Mutex.new
      @sockets = Inherited.hand_on(descriptors)
      paths = @sockets.filter_map { |url, io| path_of(io) unless foreign.include?(url) }
      @files = paths.to_h { |path| [path, stamp_of(path)] }.compact
    end

    # For the next program. From then on they are not given up any more.
    # @return [Array<Array(String, IO)>]
    def take
      @mutex.synchronize { @sockets.dup.tap { @sockets.clear } }
    end

    # There is no next program: clients are refused, and the files of Unix sockets are removed.
    # @return [void]
    def give_up
      sockets = take
      return if sockets.empty?

      sockets.map(&:last).each(&:close)
      @files.each { |path, stamp| remove(path, stamp) }
    end

    private

    # @return [String, nil] nil: it has no file
    def path_of(io)
      address = BasicSocket.for_fd(io.fileno).tap { |socket| socket.autoclose = false }.local_address
      address.unix_path if address.unix? && !address.unix_path.start_with?("\0")
    end

    # Another program may have put another socket in its place.
    def remove(path, stamp)
      File.unlink(path) if stamp_of(path) == stamp
    rescue SystemCallError
      nil
    end

    def stamp_of(path)
      info = File.stat(path)
      [info.ino, info.mtime]
    rescue SystemCallError
      nil
    end
  end
end
