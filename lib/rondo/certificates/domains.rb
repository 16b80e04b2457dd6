# frozen_string_literal: true

# The names for which certificates are fetched, and from whom: what the settings say of it. As a Hash it goes to the
# process that fetches them (renewer.rb, renewal.rb).
# SPDX-License-Identifier: MIT

require "uri"
require "rondo/boot/process_setup"
require "rondo/boot/write_trial"
require "rondo/certificates/folder"

module Rondo
  module Certificates
    # What the settings `tls_…` say.
    class Domains
      # Names of which each has a certificate of its own.
      MOST = 100
      # The folder for keys and certificates, in {Folder.place}.
      STORAGE = "acme"
      # The key of an external account as text; it is no setting, so that nothing shows it.
      EAB_KEY = ProcessSetup::SECRET
      FIELDS = %i[names email directory directory_ca eab_kid eab_key_file storage agree].freeze

      attr_reader(*FIELDS)

      # @param settings [Settings::Resolved]
      # @return [Domains, nil] nil: no name is given
      # @raise [ConfigurationError] one line
      def self.from(settings)
        names = [*settings[:tls_domain]].uniq
        return if names.empty?

        given = FIELDS.drop(1).to_h { |field| [field, settings[:"tls_#{field}"]] }
        new(names: names, **given, storage: settings[:tls_storage] || default_storage)
      end

      # systemd names the folder of a unit with StateDirectory.
      # @return [String]
      def self.default_storage(env = ENV)
        folder = env["STATE_DIRECTORY"].to_s.split(":").first
        folder ? File.join(folder, STORAGE) : Folder.place(STORAGE, env)
      rescue Failed => e
        raise ConfigurationError, "tls_domain: #{e.message}, or tls_storage"
      end

      # @param fields [Hash] of {FIELDS}
      def initialize(**fields)
        fields.each { |name, value| instance_variable_set(:"@#{name}", value) }
        @storage = File.expand_path(@storage)
        %i[directory_ca eab_key_file].each do |name|
          path = instance_variable_get(:"@#{name}")
          instance_variable_set(:"@#{name}", File.expand_path(path)) if path
        end
        check
      end

      # @return [Hash{Symbol => Object}] for {#initialize}
      def to_h
        FIELDS.to_h { |name| [name, public_send(name)] }
      end

      # For a start, before the application is loaded: the files that are named can be read, the folder can be written.
      # @return [void]
      # @raise [ConfigurationError] one line
      def check_files
        { tls_directory_ca: @directory_ca, tls_eab_key_file: @eab_key_file }.each do |name, path|
          next if path.nil? || (File.file?(path) && File.readable?(path))

          raise ConfigurationError, "#{name}: cannot read #{path}"
        end
        WriteTrial.call(File.join(@storage, "trial"), folders: true)
      rescue ConfigurationError => e
        raise ConfigurationError, e.message.start_with?("tls_") ? e.message : "tls_storage: #{e.message}"
      end

      # @param env [Hash{String => String}]
      # @return [String, nil] the key of the external account
      # @raise [Failed] one line
      def eab_key(env = ENV)
        text = @eab_key_file ? Folder.new(File.dirname(@eab_key_file)).read(File.basename(@eab_key_file)) : env[EAB_KEY]
        raise Failed, "tls_eab_key_file #{@eab_key_file} does not exist" if @eab_key_file && text.nil?

        text&.strip
      end

      private

      def check
        if @names.size > MOST
          raise ConfigurationError, "tls_domain has #{@names.size} names; at most #{MOST} are possible"
        end

        unless @email.nil? || @email.match?(/\A[^@\s]+@[^@\s]+\z/)
          raise ConfigurationError, "tls_email must be an address such as ops@example.com, not #{@email.inspect}"
        end

        url = URI.parse(@directory.to_s)
        raise URI::InvalidURIError unless url.is_a?(URI::HTTPS) && !url.host.to_s.empty?
      rescue URI::InvalidURIError
        raise ConfigurationError, "tls_directory must be an https:// URL, not #{@directory.inspect}"
      end
    end
  end
end
