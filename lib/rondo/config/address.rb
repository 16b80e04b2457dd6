# frozen_string_literal: true

# Addresses as people write them: tcp://host:port?backlog=64, unix:///path?mode=0660,
# unix://@abstract, ssl://host:port?cert=cert.pem&key=key.pem. Which addresses the settings mean is in
# binds.rb; server.rb and boot/listener_opener.rb open them; tls.rb knows the words of TLS.
# SPDX-License-Identifier: MIT

require "rondo/config/tls"

module Rondo
  # Parses bind URIs into what the core takes.
  # @api private
  module Address
    OPTIONS = { "backlog" => :backlog, "mode" => :mode, "umask" => :umask,
                "reuse_port" => :reuse_port, "low_latency" => :low_latency }.freeze
    SWITCHES = { "true" => true, "1" => true, "" => true, "false" => false, "0" => false }.freeze

    LOOPBACK = %w[127.0.0.1 ::1].freeze

    # The scheme of a listener's URL, and the scheme of the URI that binds it.
    URI_SCHEMES = { "http" => "tcp", "https" => "ssl" }.freeze

    module_function

    # @param uri [String]
    # @return [Hash{Symbol => Object}] kind, host and port or path, and the options of the query
    # @raise [AddressError] one line
    def parse(uri)
      return parse(without_mark(uri)).merge(raw: true) if raw?(uri.to_s)
      return parse(without_mark(uri)) if app?(uri.to_s)

      address, query = uri.to_s.split("?", 2)
      uri = address if query.to_s.include?("key_password_command") # it may name a secret, for messages
      case address
      when %r{\A(tcp|ssl)://(?:\[([^\]]+)\]|([^:\[\]]*)):(\d{1,5})/?\z}
        scheme, host, name, port = Regexp.last_match.captures
        place = tcp(host || name, port, uri)
        place.merge(scheme == "ssl" ? secure_options(query, address) : options(query, uri))
      when %r{\Aunix://(.+)\z} then unix(Regexp.last_match(1)).merge(options(query, uri))
      else raise AddressError, "cannot listen on #{uri}: expected tcp://HOST:PORT, ssl://HOST:PORT or unix://PATH"
      end
    end

    # @param text [String] an address as people type it
    # @return [Boolean] whether it is only a host: "localhost", "10.0.0.1", "::1", "[::1]"
    def host?(text)
      text.match?(%r{\A(?:[^:/?~@\[\]]+|\[[^\]/?]+\]|[^:/?\[\]]*:[^/?\[\]]*:[^/?\[\]]*)\z})
    end

    # @param text [String] a URI, or what people type in its place: "localhost:3000", "./app.sock", "~/app.sock"
    # @param port [Integer] of a host alone
    # @return [String] the URI; for anything else the text, which {.parse} refuses
    def uri(text, port)
      return text if text.include?("://")
      return tcp_uri(text, port) if host?(text)
      return "tcp://#{text}" if text.match?(/\A(?:\[[^\]]+\]|[^:\[\]]*):\d{1,5}(?:\?|\z)/)
      return text unless text.match?(%r{\A(?:~|\.{1,2})?/})

      path, query = text.split("?", 2)
      ["unix://#{File.expand_path(path)}", query].compact.join("?")
    end

    # Reads the certificates and keys of an address for TLS.
    # @param uri [String]
    # @param address [Hash] of {.parse}
    # @yieldparam line [String] see {TLS.read}
    # @return [Hash] what the core opens: the same for any other address
    # @raise [AddressError] one line
    def read_tls(uri, address, &note)
      spec = address[:tls] or return address

      where = uri.split("?", 2).first
      raise TLS::Refused, "alpn is for listen_raw: this listener speaks HTTP" if spec.protocols && !address[:raw]

      address.merge(tls: TLS.read(spec, where, &note))
    rescue TLS::Refused => e
      raise AddressError, "cannot listen on #{where}: #{e.message}"
    end

    # @return [Array<Hash>] what to open for that address; localhost and names below it (RFC 6761) may have several
    def resolve(address)
      return [address] unless address[:kind] == :tcp && address[:host].match?(/(?:\A|\.)localhost\.?\z/i)

      localhost.map { |host| address.merge(host: host) }
    end

    # Browsers ask both families for the name, whatever the hosts file of this machine has.
    def localhost
      require "socket"
      named = Addrinfo.getaddrinfo("localhost", nil, nil, :STREAM).map(&:ip_address)
      [*named, *(LOOPBACK & Socket.ip_address_list.map(&:ip_address))].uniq
    rescue SocketError
      LOOPBACK.first(1)
    end
    private_class_method :localhost

    # @param url [String] of a listener, http://127.0.0.1:3000
    # @return [String] the URI that binds it, tcp://127.0.0.1:3000
    def uri_of(url)
      return APP + uri_of(without_mark(url)) if app?(url)

      url.sub(/\Ahttps?(?=:)/, URI_SCHEMES)
    end

    # @param url [String] of a listener
    # @return [Hash] where that is, without options
    def place(url)
      parse(without_mark(url).sub(/\A(?:https?|ssl)(?=:)/, "tcp"))
    end

    # The URLs of raw listeners begin with this word.
    RAW = "raw "

    # URIs of listeners with an application of their own begin with this word, and so does what a process leaves of them
    # to the next one.
    APP = "app "

    # @param url [String] of a listener
    # @return [String] without the word that says what is special
    def without_mark(url)
      url.delete_prefix(RAW).delete_prefix(APP)
    end

    # @param url [String] of a listener, or a URI that binds one
    # @return [String, nil] the word
    def mark(url)
      [RAW, APP].find { |word| url.start_with?(word) }
    end

    # @param url [String] of a listener, or a URI that binds one
    # @return [Boolean] whether it has an application of its own
    def app?(url)
      url.start_with?(APP)
    end

    # @param url [String] of a listener, or a URI that binds one
    # @return [Boolean] whether its connections are raw
    def raw?(url)
      url.start_with?(RAW)
    end

    # A listening socket does not show its protocol, so its scheme goes with it from process to process.
    # @param uri [String] a URI to bind, or the URL of a listener
    # @return [String] "http" for what is plain, Unix sockets included
    def scheme(uri)
      %w[ssl https].include?(without_mark(uri)[/\A[a-z]+/]) ? "https" : "http"
    end

    # @param place [String] the URI of a listening socket, tcp://127.0.0.1:3000
    # @param uri [String] the URI that it was opened for
    # @return [String] the URL of its listener
    def url_of(place, uri)
      return place.sub(/\Atcp(?=:)/, scheme(uri)) unless raw?(uri)

      RAW + place.sub(/\Atcp(?=:)/, URI_SCHEMES.fetch(scheme(uri)))
    end

    # @param uri [String]
    # @return [String] that without options: what a raw listener is known by
    def key(uri)
      without_mark(uri).split("?", 2).first.to_s
    end

    # What a worker is told of a listener.
    # @param uri [String]
    # @param url [String]
    # @return [String] one word: the scheme; for a raw listener, and one with an application of its own, also the {.key}
    def word(uri, url)
      return "raw:#{[key(uri)].pack("m0")}" if raw?(url)

      app?(uri) ? "#{scheme(url)}:#{[key(uri)].pack("m0")}" : scheme(url)
    end

    # @param word [String] of {.word}
    # @return [Array(String, String)] "raw" or a scheme, and the {.key}, if there is one
    def read_word(word)
      kind, key = word.split(":", 2)
      [kind, key&.unpack1("m0")&.force_encoding(Encoding::UTF_8)]
    end

    # @return [String] "::" where the system has IPv6, else "0.0.0.0"
    def any_host
      require "socket"
      Socket.ip_address_list.any?(&:ipv6?) ? "::" : "0.0.0.0"
    end

    # @return [String] the URI of a TCP address
    def tcp_uri(host, port)
      host = host.to_s.delete("[]")
      host.include?(":") ? "tcp://[#{host}]:#{port}" : "tcp://#{host}:#{port}"
    end

    def tcp(host, port, uri)
      port = Integer(port, 10)
      raise AddressError, "cannot listen on #{uri}: port #{port} is above 65535" if port > 65_535

      { kind: :tcp, host: host.empty? ? any_host : host, port: port }
    end
    private_class_method :tcp

    def unix(path)
      path = File.expand_path(path) unless path.start_with?("@")
      { kind: :unix, path: path }
    end
    private_class_method :unix

    def options(query, uri)
      words(query).to_h do |name, value|
        key = OPTIONS[name] or raise AddressError, "cannot listen on #{uri}: unknown option #{name}"
        [key, option_value(key, value, uri)]
      end.then { |found| with_mode(found) }
    end
    private_class_method :options

    # A command for a password may be among the words: messages do not repeat them.
    def secure_options(query, address)
      of_tls, others = words(query).partition { |name, _| TLS::WORDS.include?(name) }
      rest = others.map { |pair| pair.join("=") }.join("&")
      options(rest, address).merge(tls: TLS.spec(of_tls.map { |name, value| [name, decoded(value)] }))
    rescue TLS::Refused => e
      raise AddressError, "cannot listen on #{address}: #{e.message}"
    end
    private_class_method :secure_options

    def decoded(value)
      value.b.gsub(/%(\h\h)/) { Regexp.last_match(1).hex.chr }.force_encoding(Encoding::UTF_8)
    end
    private_class_method :decoded

    def words(query)
      query.to_s.split("&").map { |pair| pair.split("=", 2) }.map { |name, value| [name.to_s, value.to_s] }
    end
    private_class_method :words

    # The umask removes bits from the mode of a socket's file; an explicit mode wins.
    def with_mode(options)
      umask = options.delete(:umask)
      umask ? { mode: 0o777 & ~umask }.merge(options) : options
    end
    private_class_method :with_mode

    def option_value(key, text, uri)
      case key
      when :backlog then Integer(text, 10)
      when :mode, :umask then Integer(text, 8)
      else SWITCHES.fetch(text)
      end
    rescue ArgumentError, KeyError
      raise AddressError, "cannot listen on #{uri}: #{key} cannot be #{text.inspect}"
    end
    private_class_method :option_value
  end
end
