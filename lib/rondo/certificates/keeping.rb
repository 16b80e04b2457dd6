# frozen_string_literal: true

# What a server with fetched certificates has besides its listeners: port 80 (door.rb) and the thread that renews
# (renewer.rb). Used by the launcher and the master.
# SPDX-License-Identifier: MIT

require "rondo/boot/inherited"
require "rondo/certificates/domains"
require "rondo/certificates/door"
require "rondo/certificates/renewer"

module Rondo
  module Certificates
    # Both of them, from the listening of a server to its end.
    class Keeping
      # @param settings [Settings::Resolved]
      # @param inherited [Inherited]
      # @param log [Logger]
      # @param secrets [Hash{String => String, nil}] see {Renewer#initialize}
      # @return [Keeping, nil] nil: no certificates are fetched
      # @raise [Error] one line
      def self.open(settings, inherited, log, secrets:, &on_new)
        domains = Domains.from(settings) or return
        new(domains, settings, log, secrets, on_new).tap { |keeping| keeping.listen(inherited) }
      end

      # @param domains [Domains]
      # @param settings [Settings::Resolved]
      # @param log [Logger]
      # @param secrets [Hash{String => String, nil}]
      # @param on_new [#call]
      def initialize(domains, settings, log, secrets, on_new)
        @domains = domains
        @settings = settings
        @log = log
        @secrets = secrets
        @on_new = on_new
      end

      # @param inherited [Inherited]
      # @return [void]
      # @raise [Error] one line
      def listen(inherited)
        @door = Door.for_settings(@domains, @settings, inherited)
      end

      # @return [void]
      def start
        urls = @door ? @door.urls : []
        urls.each { |url| @log.say "* Redirecting from #{url} to https" }
        @log.say "* Certificates for #{@domains.names.join(", ")} from #{@domains.directory}, " \
                 "kept in #{@domains.storage}"
        renew
      end

      # For the program that this process becomes by exec.
      # @return [Array<Array(String, Integer)>] URLs and descriptors
      def descriptors
        @door ? @door.descriptors : []
      end

      # @return [Array<String>] URLs of those that another program opened
      def foreign
        @door&.foreign? ? @door.urls : []
      end

      # @return [Array<String>] URLs of the others; no next program serves its application there
      def redirects
        @door ? @door.urls - foreign : []
      end

      # Before an exec: clients that have been accepted get their answers, and those that come meanwhile wait in the
      # kernel's queue.
      # @return [Array<Array(String, IO)>] URLs and sockets that stay open
      def rest
        @resting = Inherited.hand_on(descriptors)
        close
        @resting
      end

      # There was no exec after all.
      # @return [void]
      # @raise [Error] one line
      def go_on
        sockets = @resting.map { |url, io| [Address.uri_of(url), io.tap { io.autoclose = false }.fileno] }
        listen(@door&.foreign? ? Inherited.new([], sockets) : Inherited.new(sockets))
        renew
      end

      # @return [void]
      def close
        @renewer&.stop
        @door&.close
      end

      private

      def renew
        @renewer = Renewer.new(@domains, @log, secrets: @secrets, on_new: @on_new)
        @renewer.start
      end
    end
  end
end
