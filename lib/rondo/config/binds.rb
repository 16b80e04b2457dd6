# frozen_string_literal: true

# The addresses to bind. Used by the launcher and the master.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/boot/inherited"

module Rondo
  # Chooses among the command line, the configuration file and inherited sockets.
  # @api private
  module Binds
    # Environments in which an address needs no certificate.
    WITHOUT_CERTIFICATE = %w[development test].freeze

    module_function

    # @param settings [Settings::Resolved]
    # @param inherited [Inherited] what is served where nothing is bound
    # @param log [Logger] is told of certificates that were found
    # @return [Array<String>] URIs
    # @raise [AddressError] one line: there is no certificate for one of them
    def uris(settings, inherited, log)
      special = special(settings)
      foreign = inherited.foreign_uris(special)
      wanted = activated(settings, foreign)
      wanted = with_foreign(settings, foreign) if wanted.empty?
      wanted = inherited.uris(special) if wanted.empty?
      wanted = [default(settings)] if wanted.empty? && settings[:bind] != false
      [*wanted, *special].map { |uri| bare?(uri) ? with_certificate(uri, settings, log) : uri }
    end

    # @param settings [Settings::Resolved]
    # @return [Array<String>] URIs of raw listeners, which say so
    def raw(settings)
      (settings[:listen_raw] || {}).keys.map { |uri| "#{Address::RAW}#{uri}" }
    end

    # @param settings [Settings::Resolved]
    # @return [Array<String>] URIs of listeners with an application of their own, and of raw ones, which say so
    def special(settings)
      [*(settings[:listen] || {}).keys.map { |uri| "#{Address::APP}#{uri}" }, *raw(settings)]
    end

    # @param settings [Settings::Resolved]
    # @param key [String] of {Address.key}
    # @return [#call, nil] makes the handlers of this raw listener; nil: the configuration does not name it any more
    def maker(settings, key)
      (settings[:listen_raw] || {}).find { |uri, _| Address.key(uri) == key }&.last
    end

    # Finds invalid addresses before the application is loaded.
    # @param settings [Settings::Resolved]
    # @return [void]
    # @raise [AddressError] one line
    def check(settings)
      found = wanted(settings)
      marked = found.find { |uri| Address.raw?(uri) }
      raise AddressError, "cannot bind #{marked}: listen_raw does that" if marked

      [*found, *special(settings)].each do |uri|
        with_certificate(uri, settings) if bare?(uri)
        check_place(uri)
      end
    end

    # What an address names has to be there. A socket that was opened before is not looked for again.
    def check_place(uri)
      address = Address.parse(uri)
      return check_folder(address[:path]) if address[:kind] == :unix
      return if [Inherited::VARIABLE, "LISTEN_FDS"].any? { |name| ENV.key?(name) }

      Address.resolve(address).each { |one| Addrinfo.getaddrinfo(one[:host], nil, nil, :STREAM) }
    rescue SocketError, SystemCallError => e
      why = e.is_a?(SystemCallError) ? SystemCallError.new(nil, e.errno).message : e.message.sub(/\A\w+: /, "")
      raise AddressError, "cannot listen on #{Address.without_mark(uri).split("?").first}: #{why}"
    end
    private_class_method :check_place

    def check_folder(path)
      File.stat(File.join(File.dirname(path), ".")) unless path.start_with?("@")
    end
    private_class_method :check_folder

    # Addresses of the command line replace those of the file.
    # @param settings [Settings::Resolved]
    # @return [Array<String>] URIs of what the settings name
    # @raise [AddressError] one line
    def wanted(settings)
      typed = typed(settings)
      typed << :port if secure?(settings) && typed.empty?
      given = typed == %i[port] ? [] : [*(settings[:bind] || [])]
      hosts, uris = given.partition { |text| Address.host?(text) }
      at_port = hosts.map { |host| default(settings, host) }
      at_port << default(settings) if hosts.empty? && typed.include?(:port)
      if secure?(settings) && at_port.empty?
        raise AddressError, "--tls, --cert and --key are about --port: write ssl:// into the address"
      end

      [*uris.map { |uri| Address.uri(uri, settings[:port]) }, *at_port, *fetched(settings)]
    end

    # @return [Array<Symbol>] the settings on the command line that say where to listen
    def typed(settings)
      %i[bind port].select { |name| settings.source(name) == "command line" }
    end
    private_class_method :typed

    # @param foreign [Array<String>] URIs of the sockets that systemd opened
    # @return [Array<String>] these with TLS, if only TLS is asked for
    def activated(settings, foreign)
      return [] unless secure?(settings) && typed(settings).empty? && foreign.any?

      [*foreign.map { |uri| secure(uri, settings) }, *fetched(settings)]
    end
    private_class_method :activated

    # @return [Boolean] whether the port is to be served with TLS
    def secure?(settings)
      settings[:tls] || settings.given?(:tls_cert) || settings.given?(:tls_key)
    end
    private_class_method :secure?

    # @return [Array<String>] what the settings name, and of systemd's sockets those that they want besides, or instead
    def with_foreign(settings, foreign)
      which = foreign.any? ? settings[:bind_to_activated_sockets] : nil
      return foreign if which == :only

      wanted = wanted(settings)
      wanted |= foreign if which == :besides && wanted.any?
      wanted
    end
    private_class_method :with_foreign

    # @return [String, nil] the address of the settings `tls_…`, with certificates that may not be there yet
    def fetched(settings)
      return if [*settings[:tls_domain]].empty?

      require "rondo/certificates/domains"
      require "rondo/certificates/store"
      domains = Certificates::Domains.from(settings)
      store = Certificates::Store.new(domains.storage)
      files = domains.names.map { |name| { cert: store.path(name), key: store.path(name) } }
      place = Address.tcp_uri(settings[:host] || Address.any_host, settings[:tls_port]).sub("tcp:", "ssl:")
      "#{place}?#{TLS.query({ awaits: "files", certs: files })}"
    end
    private_class_method :fetched

    def default(settings, host = settings[:host])
      return Address.tcp_uri(host || Address.any_host, settings[:port]) unless secure?(settings)

      host ||= files(settings).empty? ? "localhost" : Address.any_host
      secure(Address.tcp_uri(host, settings[:port]), settings)
    end
    private_class_method :default

    # @return [Hash{Symbol => String}]
    def files(settings)
      { cert: settings[:tls_cert], key: settings[:tls_key] }.compact
    end
    private_class_method :files

    # @param uri [String] one of a Unix socket stays as it is; after a restart by exec it is one for TLS already
    def secure(uri, settings)
      return uri if uri.start_with?("unix:")

      [uri.sub(/\Atcp:/, "ssl:"), TLS.query(files(settings))].reject(&:empty?).join("?")
    end
    private_class_method :secure

    # @return [Boolean] whether it is for TLS, and names no certificate
    def bare?(uri)
      spec = Address.parse(uri)[:tls]
      spec ? spec.pairs.empty? : false
    end
    private_class_method :bare?

    def with_certificate(uri, settings, log = nil)
      require "rondo/certificates/development"
      place, words = uri.split("?", 2)
      host = Address.without_mark(place)[%r{\Assl://\[?(.*?)\]?:\d+/?\z}, 1]
      check_environment(settings[:environment])
      found = Certificates::Development.new.find(host)
      log&.say "* Certificate for #{host}: #{found.line}"
      "#{place}?#{[TLS.query({ cert: found.cert, key: found.key }), *words].join("&")}"
    rescue Certificates::Failed => e
      raise AddressError, "cannot listen on #{place}: #{e.message}"
    end
    private_class_method :with_certificate

    def check_environment(name)
      return if WITHOUT_CERTIFICATE.include?(name.to_s)

      raise Certificates::Failed, "cert is missing, and the environment is #{name}; a certificate is made in " \
                                  "#{WITHOUT_CERTIFICATE.join(" and ")} only"
    end
    private_class_method :check_environment
  end
end
