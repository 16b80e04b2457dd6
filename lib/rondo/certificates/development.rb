# frozen_string_literal: true

# A certificate for an ssl:// address that names none, in development: that of the gem `localhost`, else one that
# mkcert's authority signs, else one of our own authority (authority.rb). config/binds.rb asks for it.
# SPDX-License-Identifier: MIT

require "rondo/certificates/authority"

module Rondo
  module Certificates
    # Finds or makes a certificate for a host of this machine.
    class Development
      # Every certificate has these, whatever the host is.
      ALWAYS = %w[localhost 127.0.0.1 ::1].freeze
      # Addresses that stand for all of the machine's.
      ALL = ["0.0.0.0", "::", ""].freeze
      CA = "ca.pem"
      KEY = "ca-key.pem"
      # The folder of our own, in {Folder.place}.
      NAME = "development"

      # @!attribute cert [String] path of a PEM file
      # @!attribute key [String] the same; it may be the same file
      # @!attribute line [String] what it is, and who trusts it, for the log
      Found = Struct.new(:cert, :key, :line)

      # @param env [Hash{String => String}]
      # @param folder [Folder]
      def initialize(env = ENV, folder: Folder.new(Folder.place(NAME, env)))
        @env = env
        @folder = folder
      end

      # @return [String] path of the certificate of our own authority, which may not exist
      def own_authority
        @folder.at(CA)
      end

      # @param host [String] of the address
      # @return [Found]
      # @raise [Failed] one line
      def find(host)
        host = host.downcase.delete_suffix(".")
        host = "localhost" if ALL.include?(host)
        of_gem(host) || of_mkcert(host) || of_our_own(host)
      end

      # @return [Authority] ours; it is made if there is none that is good
      # @raise [Failed] one line
      def authority
        @folder.locked { load_own || create_own }
      end

      private

      # ---- the gem ----

      # It makes files for a host when it is asked, in folders that changed with its versions.
      def of_gem(host)
        in_folders(host) || (asked_gem?(host) && in_folders(host))
      end

      def in_folders(host)
        gem_folders.each do |path|
          cert, key = %w[crt key].map { |type| File.join(path, "#{host}.#{type}") }
          next unless File.readable?(cert) && File.readable?(key) && good?(cert, [host])

          return Found.new(cert, key, "of the gem localhost, #{cert}; browsers trust it after `bake localhost:install`")
        end
        nil
      end

      def gem_folders
        state = Folder.base(@env, "XDG_STATE_HOME", ".local/state")
        [File.join(state, "localhost.rb"), File.join(Dir.home, ".localhost")]
      rescue ArgumentError
        []
      end

      # What it does at its first use is its own affair: whatever goes wrong there, there are other ways.
      def asked_gem?(host)
        require "localhost/authority"
        Localhost::Authority.fetch(host) ? true : false
      rescue LoadError, StandardError
        false
      end

      # ---- mkcert ----

      def of_mkcert(host)
        path = mkcert_folder or return
        authority = load_from(File.join(path, "rootCA.pem"), File.join(path, "rootCA-key.pem")) or return
        issued(authority, host, "mkcert", "by mkcert's authority in #{path}; browsers trust it after `mkcert -install`")
      end

      def mkcert_folder
        [@env["CAROOT"], from_mkcert, *mkcert_defaults].find do |path|
          path.to_s.start_with?("/") && File.readable?(File.join(path, "rootCA-key.pem"))
        end
      end

      def from_mkcert
        IO.popen([@env.slice("CAROOT", "XDG_DATA_HOME"), "mkcert", "-CAROOT", { err: File::NULL }], &:read).chomp
      rescue SystemCallError
        nil
      end

      def mkcert_defaults
        data = Folder.base(@env, "XDG_DATA_HOME", ".local/share")
        [File.join(data, "mkcert"), File.join(Dir.home, "Library/Application Support/mkcert")]
      rescue ArgumentError
        []
      end

      # ---- our own ----

      def of_our_own(host)
        unless Authority.may_sign?(host)
          raise Failed, "cert is missing; Rondo makes certificates for localhost, *.localhost, *.test and addresses " \
                        "of the loopback only"
        end

        issued(authority, host, "own", "by #{own_authority}; browsers trust it after `rondo cert trust`")
      end

      def load_own
        authority = load_from(@folder.at(CA), @folder.at(KEY))
        authority if authority&.good_for?(Authority::NEAR)
      end

      # The key comes first: where there is a certificate, there is its key.
      def create_own
        authority, key = Authority.create
        @folder.write(KEY, key)
        @folder.write(CA, authority.certificate.to_pem, mode: 0o644)
        authority
      end

      # ---- leaves ----

      def issued(authority, host, who, line)
        names = [host, *ALWAYS].uniq
        file = "#{host.tr(":", "_").gsub(/[^\w.-]/, "")}.#{who}.pem"
        @folder.locked do
          path = @folder.at(file)
          @folder.write(file, authority.issue(names)) unless good?(path, names, authority)
          Found.new(path, path, line)
        end
      end

      # Whether the certificate has the names, lives on for a while, and comes from that authority.
      def good?(path, names, authority = nil)
        certificate = OpenSSL::X509::Certificate.new(File.binread(path))
        return false unless Authority.new(certificate, nil).good_for?(Authority::NEAR)
        return false unless names.all? { |name| OpenSSL::SSL.verify_certificate_identity(certificate, name) }

        authority.nil? || certificate.verify(authority.certificate.public_key)
      rescue SystemCallError, OpenSSL::OpenSSLError
        false
      end

      def load_from(certificate, key)
        Authority.load(File.binread(certificate), File.binread(key))
      rescue SystemCallError, Failed
        nil
      end
    end
  end
end
