# frozen_string_literal: true

# Addresses as people write them: tcp://host:port?backlog=64, unix:///path?mode=0660,
# unix://@abstract. Which addresses the settings mean is in binds.rb; server.rb and
# boot/listener_opener.rb open them.
# SPDX-License-Identifier: MIT

module Rondo
  # Parses bind URIs into what the core takes.
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
      address, query = uri.to_s.split("?", 2)
      case address
      when %r{\Atcp://(?:\[([^\]]+)\]|([^:\[\]]*)):(\d{1,5})/?\z}
        host, name, port = Regexp.last_match.captures
        tcp(host || name, port, uri).merge(options(query, uri))
      when %r{\Aunix://(.+)\z} then unix(Regexp.last_match(1)).merge(options(query, uri))
      when %r{\Assl://} then raise AddressError, "cannot listen on #{uri}: this version has no TLS"
      else raise AddressError, "cannot listen on #{uri}: expected tcp://HOST:PORT or unix://PATH"
      end
    end

    # @return [Array<Hash>] what to open for that address; a name such as localhost may have several
    def resolve(address)
      return [address] unless address[:kind] == :tcp && address[:host] == "localhost"

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
      url.sub(/\Ahttps?(?=:)/, URI_SCHEMES)
    end

    # A listening socket does not show its protocol, so its scheme goes with it from process to process.
    # @param uri [String] a URI to bind, or the URL of a listener
    # @return [String] "http" for what is plain, Unix sockets included
    def scheme(uri)
      %w[ssl https].include?(uri[/\A[a-z]+/]) ? "https" : "http"
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
      query.to_s.split("&").to_h do |pair|
        name, value = pair.split("=", 2)
        key = OPTIONS[name] or raise AddressError, "cannot listen on #{uri}: unknown option #{name}"
        [key, option_value(key, value.to_s, uri)]
      end.then { |found| with_mode(found) }
    end
    private_class_method :options

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
