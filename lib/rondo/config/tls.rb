# frozen_string_literal: true

# What an address says of TLS, in Puma's words, and the certificates and keys that it names. Its neighbours are
# address.rb, which knows where the words stand, and the core, which checks what was read (ext/rondo/tls/tls_context.h).
# SPDX-License-Identifier: MIT

require "io/wait"
require "open3"

module Rondo
  # The words of ssl:// addresses.
  # @api private
  module TLS
    # What is wrong with a word; the caller says at which address.
    class Refused < StandardError; end

    # A certificate with its chain, and its key: where they are, and how the key is opened.
    # @!attribute certificate [String] path of a PEM file, or what {.keep} returned
    # @!attribute key [String] the same
    # @!attribute password_command [String, nil] a command that prints the password of the key
    Pair = Struct.new(:certificate, :key, :password_command)
    # What was understood: of a listener, without the bytes.
    # @!attribute pairs [Array<Pair>]
    # @!attribute ca [String, nil] path of a PEM file
    # @!attribute protocols [Array<String>, nil] names of ALPN, for raw listeners
    # @!attribute awaits [Boolean] whether a pair may be missing until somebody writes its files
    Spec = Struct.new(:pairs, :ca, :verify_mode, :verification_flags, :ciphers, :ciphersuites, :awaits, :protocols,
                      keyword_init: true)

    # What was read, for the core. It does not show what it has: there are keys in it.
    class Material < Hash
      # @return [String]
      def inspect
        "#<#{self.class}>"
      end
      alias to_s inspect
    end

    VERIFY_MODES = { "none" => :none, "peer" => :peer, "force_peer" => :force_peer }.freeze
    PAIR = %w[cert key key_password_command].freeze
    # 1.0 and 1.1 are never spoken, and sessions are never kept here, whatever these say.
    WITHOUT_EFFECT = %w[no_tlsv1 no_tlsv1_1 reuse].freeze
    # In an address Puma writes keystore-pass, in `ssl_bind` keystore_pass.
    KEYSTORE = %w[keystore keystore_pass keystore-pass keystore_type keystore-type truststore truststore_pass
                  truststore-pass truststore_type truststore-type cipher_suites protocols ssl_cipher_list].freeze
    WORDS = [*PAIR, "awaits", "ca", "verify_mode", "verification_flags", "ssl_cipher_filter", "ssl_ciphersuites",
             "alpn", *WITHOUT_EFFECT, *KEYSTORE].freeze
    PROTOCOLS_MAX = 16
    # A path that is no path: PEM that a configuration file has itself.
    KEPT = /\Apem:(\d+)\z/
    LONGEST = 1 << 20
    # Of fcntl(2).
    GET_SEALS = 1034
    SEAL_WRITE = 8
    private_constant :GET_SEALS, :SEAL_WRITE
    # Seconds.
    COMMAND_PATIENCE = 10
    LONGEST_PASSWORD = 4096
    @kept = []

    module_function

    # @param pem [String] a certificate or a key
    # @return [String] stands for it in an address
    def keep(pem)
      at = @kept.index(pem) || @kept.push(pem).size - 1
      "pem:#{at}"
    end

    # The options of a configuration file's `ssl_bind` as the query of an address.
    # @param options [Hash{Symbol, String => Object}] nil: as if it were not there
    # @return [String]
    # @raise [Refused] half a line
    def query(options)
      further = options[:certs] || options["certs"] || []
      raise Refused, "certs must be an Array of Hashes" unless further.is_a?(Array) && further.all?(Hash)

      own = options.reject { |name, _| name.to_s == "certs" }
      [own, *further].flat_map(&:to_a).filter_map { |name, value| word(name.to_s, value) unless value.nil? }.join("&")
    end

    def word(name, value)
      value = keep(value.to_s) if name.end_with?("_pem")
      value = [*value].join(",")
      "#{name.delete_suffix("_pem")}=#{value.gsub(/[%&=?#\s]/) { |byte| format("%%%02X", byte.ord) }}"
    end
    private_class_method :word

    # @param words [Array<Array(String, String)>] in their order: a second cert, with its key, is another certificate
    # @return [Spec] its pairs may be missing: then somebody else has to find them (certificates/development.rb)
    # @raise [Refused] half a line
    def spec(words)
      raise Refused, "this build has no TLS" unless library

      store = words.map(&:first).find { |name| KEYSTORE.include?(name) }
      raise Refused, "#{store} is JRuby's; give cert and key as PEM files" if store

      single = words.to_h.except(*PAIR)
      mode = verify_mode(single["verify_mode"])
      raise Refused, "verify_mode #{mode} needs ca" if mode != :none && single["ca"].to_s.empty?

      Spec.new(pairs: pairs(words), ca: path(single["ca"]), verify_mode: mode,
               verification_flags: single["verification_flags"], ciphers: single["ssl_cipher_filter"],
               ciphersuites: single["ssl_ciphersuites"], awaits: single["awaits"] == "files",
               protocols: single["alpn"] && protocols(single["alpn"]))
    end

    # @param names [Array<String>]
    # @return [String] each behind its length (RFC 7301, section 3.1)
    def packed(names)
      names.map { |name| [name.bytesize, name].pack("Ca*") }.join
    end

    # Reads the files, each once. Where they may be missing, one that has expired is shown: else the server that fetches
    # the next one could not start.
    # @param spec [Spec]
    # @param address [String] for messages of the core
    # @yieldparam line [String] what is wrong with files that may be missing, for the log
    # @return [Material]
    # @raise [Refused] half a line
    def read(spec, address, &note)
      raise Refused, "cert is missing" if spec.pairs.empty?

      given = spec.awaits ? awaited(spec, address, &note) : { certificates: spec.pairs.map { |pair| read_pair(pair) } }
      found = { name: name(spec), address: address, **given, ca: spec.ca && read_file(spec.ca),
                ca_name: spec.ca, verify_mode: spec.verify_mode,
                verification_flags: spec.verification_flags, ciphers: spec.ciphers, ciphersuites: spec.ciphersuites,
                protocols: spec.protocols && packed(spec.protocols) }
      Material.new.update(found.compact)
    end

    # Each stands for itself: one that is missing or damaged holds up no other one, and no server. One that has expired
    # is shown until somebody has renewed it.
    def awaited(spec, address)
      pairs = spec.pairs.filter_map do |pair|
        next unless [pair.certificate, pair.key].all? { |path| File.exist?(path) }

        read_pair(pair).tap { |found| check({ certificates: [found], checked: true }) }
      rescue Refused, AddressError => e
        yield "! Not shown on #{address}: #{e.message}" if block_given?
        nil
      end
      { certificates: pairs, awaited: spec.pairs.map(&:certificate), checked: true }
    end
    private_class_method :awaited

    # Of files that may be missing, those that cannot be used any more leave in place what they had.
    # @param found [Material]
    # @param before [Material, nil] shown so far, for the same words
    # @return [Material]
    def carry_over(found, before)
      return found unless before && found[:awaited]

      pairs = [*before[:certificates], *found[:certificates]].to_h { |pair| [pair[:certificate_name], pair] }
      found.merge(certificates: found[:awaited].filter_map { |path| pairs[path] })
    end

    # Listeners of the same name show the same certificates, whatever is in the files.
    # @param spec [Spec]
    # @return [String]
    def name(spec)
      spec.to_a.inspect
    end

    # @param spec [Spec]
    # @return [Array<String>] paths of what {.read} reads
    def files(spec)
      [*spec.pairs.flat_map { |pair| [pair.certificate, pair.key] }, *spec.ca].grep_v(KEPT).uniq
    end

    # What may be known of certificates: without their keys.
    # @param material [Material]
    # @return [Array<Hash>] of each pair the name of the material, the certificate, the names of both files
    def shown(material)
      material[:certificates].map do |pair|
        { name: material[:name], **pair.slice(:certificate, :certificate_name, :key_name) }
      end
    end

    # For a worker: the master alone reads files.
    # @param materials [Array<Material, nil>] by listener
    # @return [IO, nil] closed by exec; nil if there is nothing to hand on
    def hand_on(materials)
      return if materials.none?

      IO.for_fd(seal(Marshal.dump(materials.map { |material| material&.to_a })))
    end

    # A certificate that has expired since it was read is still shown: that is better than no worker.
    # @param io [IO] of {.hand_on}, which other workers may have as well; is closed
    # @return [Array<Material, nil>]
    # @raise [Refused] another version wrote it, or it is damaged
    def take(io)
      all = Marshal.load(io.pread(io.stat.size, 0)) # rubocop:disable Security/MarshalLoad
      Array(all).map { |pairs| pairs && Material.new.update(pairs.to_h, checked: true) }
    rescue TypeError, ArgumentError, NoMethodError, EOFError
      raise Refused, "certificates of another process cannot be read"
    ensure
      io.close
    end

    # @param io [IO]
    # @return [Boolean] whether it is one of {.hand_on}
    def sealed?(io)
      io.fcntl(GET_SEALS, 0).anybits?(SEAL_WRITE)
    end

    # @param address [String]
    # @param error [StandardError] why its new certificates cannot be used
    # @return [String] for the log
    def complaint(address, error)
      reason = error.message.delete_prefix("cannot listen on #{address}: ")
      "! Certificates of #{address} stay as they are: #{reason}"
    end

    def protocols(word)
      names = word.split(",", -1)
      return names if names.size.between?(1, PROTOCOLS_MAX) && names.all? { |name| name.bytesize.between?(1, 255) }

      raise Refused, "alpn must be 1 to #{PROTOCOLS_MAX} names with commas between them, each of up to 255 bytes"
    end
    private_class_method :protocols

    def verify_mode(word)
      VERIFY_MODES.fetch(word || "none") do
        raise Refused, "verify_mode cannot be #{word.inspect}; none, peer or force_peer"
      end
    end
    private_class_method :verify_mode

    # The words of a pair are those from one cert or key to the next of that name.
    def pairs(words)
      rows = [{}]
      words.each do |name, value|
        next unless PAIR.include?(name)

        rows << {} if rows.last.key?(name)
        rows.last[name] = value
      end
      rows == [{}] ? [] : rows.map { |row| pair(row) }
    end
    private_class_method :pairs

    def pair(row)
      certificate, key, command = row.values_at(*PAIR)
      raise Refused, "cert is missing" if certificate.to_s.empty?
      raise Refused, "key is missing" if key.to_s.empty?

      Pair.new(path(certificate), path(key), command)
    end
    private_class_method :pair

    def path(text)
      text && (KEPT.match?(text) ? text : File.expand_path(text))
    end
    private_class_method :path

    # Where both are one file, it is read once: it may be replaced meanwhile.
    def read_pair(pair)
      certificate = read_file(pair.certificate)
      key = pair.key == pair.certificate ? certificate : read_file(pair.key)
      { certificate: certificate, key: key,
        certificate_name: name_of(pair.certificate, "cert_pem"), key_name: name_of(pair.key, "key_pem"),
        password: pair.password_command && password(pair.password_command) }.compact
    end
    private_class_method :read_pair

    def name_of(path, word)
      KEPT.match?(path) ? word : path
    end
    private_class_method :name_of

    def read_file(path)
      kept = path[KEPT, 1] and return @kept.fetch(kept.to_i)

      bytes = File.binread(path, LONGEST + 1).to_s
      raise Refused, "#{path}: it is larger than #{LONGEST} bytes" if bytes.bytesize > LONGEST

      bytes
    rescue SystemCallError => e
      raise Refused, "#{path}: #{SystemCallError.new(nil, e.errno).message}"
    rescue IndexError
      raise Refused, "#{path} is not known"
    end
    private_class_method :read_file

    # The command may name a secret itself, so a message does not have it. It may start others, and wait for a person
    # that is not there: after a while all of them are killed.
    def password(command, patience = COMMAND_PATIENCE)
      due = clock + patience
      Open3.popen2(command, pgroup: true) do |input, output, waiter|
        input.close
        text = read_until(due, output)
        has_ended = text && waiter.join([due - clock, 0].max)
        raise Refused, "key_password_command takes longer than #{patience} s" unless has_ended
        # A master waits for all of its children, and may have got the status. Then the key has to tell.
        raise Refused, "key_password_command failed" unless waiter.value.nil? || waiter.value.success?

        text.chomp
      ensure
        kill_group(waiter.pid) unless has_ended
      end
    rescue SystemCallError => e
      raise Refused, "key_password_command: #{SystemCallError.new(nil, e.errno).message}"
    end
    private_class_method :password

    def clock
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
    private_class_method :clock

    def kill_group(number)
      Process.kill(:KILL, -number)
    rescue Errno::ESRCH
      nil
    end
    private_class_method :kill_group

    # @return [String, nil] all of it; nil if its end has not come in time
    def read_until(due, io)
      text = +""
      loop do
        left = due - clock
        return if left.negative? || !io.wait_readable(left)

        part = io.read_nonblock(LONGEST_PASSWORD, exception: false)
        return text unless part
        next if part == :wait_readable

        text << part
        next if text.bytesize <= LONGEST_PASSWORD

        raise Refused, "key_password_command prints more than #{LONGEST_PASSWORD} bytes"
      end
    end
    private_class_method :read_until
  end
end
