# frozen_string_literal: true

# Asks several servers in turn where a node is, and connects only to one that says that it is a master. Each question
# has a deadline. The base of sentinels.rb and cluster_nodes.rb.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"
require "rondo/pubsub/redis/place"

module Rondo
  module PubSub
    class Redis < Engine
      # A place that has to be found.
      # @api private
      class Search < Place
        # Seconds for one server: to connect, and to answer.
        SECONDS = 2.0
        # Servers that are asked for one attempt.
        ASKED = 8
        LONGEST_PAUSE = 0.5
        # Bytes of an answer, and of the reason that a server gives.
        REPLY_MAX = 4 << 20
        REASON_MAX = 200
        # Another node is the master now, or will be soon.
        ELSEWHERE = /\A(READONLY|MASTERDOWN|LOADING) /
        HOST = /\A[A-Za-z0-9._:-]{1,255}\z/

        # @see Place#initialize
        def initialize(address)
          super
          @longest_pause = LONGEST_PAUSE
        end

        # @see Place#find
        def find
          @node = nil
          answers, failures = [[], []]
          how = Link::Denied
          candidates.first(ASKED).each do |server|
            return found!(ask(server))
          rescue Link::Broken => e
            reason = e.message[0, REASON_MAX]
            is_answer = e.is_a?(Link::Refused) && !elsewhere?(reason)
            how = Link::Refused unless e.is_a?(Link::Denied)
            is_answer ? answers << reason : failures << "#{Address.text(*server)}: #{reason}"
          end
          give_up(answers, failures, how)
        end

        # @see Place#link
        def link(**terms, &)
          Link.new(config(*@node), **terms, checks: checks, &)
        rescue Link::Refused => e
          raise e
        rescue Link::Broken => e
          raise Link::Broken, "#{Address.text(*@node)}: #{e.message}"
        end

        # One server is asked, each time another one. Who does not answer has nothing to say.
        # @see Place#moved?
        def moved?
          node = ask(candidates.first)
          node != @node && question(config(*node), ["ROLE"]) in ["master", *]
        rescue Link::Broken
          false
        end

        # @see Place#elsewhere?
        def elsewhere?(message)
          ELSEWHERE.match?(message)
        end

        private

        # The same every time, whoever was asked first: the log has one line for each reason.
        def give_up(answers, failures, how)
          raise how, "#{lost}: #{answers.uniq.sort.join("; ")}" if answers.any?

          raise Link::Broken, "#{lost}: #{failures.sort.join("; ")}"
        end

        def found!(node)
          @node = node
          @found = found_text
        end

        # @return [Array(String, Integer)]
        # @raise [Link::Broken] this is no host, or no port
        def node_of(host, port)
          is_right = host.is_a?(String) && HOST.match?(host) && port.to_s.match?(/\A\d{1,5}\z/)
          raise Link::Broken, "it names no address" unless is_right && port.to_i.between?(1, 65_535)

          [host.b.force_encoding(Encoding::UTF_8), port.to_i]
        end

        # Commands on each new connection.
        def checks
          [[["ROLE"], method(:check_role)]]
        end

        def check_role(reply)
          Link.check(reply, "ROLE: ")
          return if reply.is_a?(Array) && reply.first == "master"

          raise Link::Broken, "#{Address.text(*@node)} is not a master now"
        end

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        # One question on a connection of its own.
        def question(config, words)
          limit = now + SECONDS
          link = Link.new(config, timeout: SECONDS, ping: SECONDS, reply_max: REPLY_MAX)
          answers = []
          link.ask(words) { |reply| answers << reply }
          turn(link, limit) while answers.empty?
          Link.check(answers.first)

          answers.first
        ensure
          link&.close
        end

        def turn(link, limit)
          left = limit - now
          raise Link::Broken, "no answer within #{SECONDS} s" unless left.positive?

          writing = [link.io] if link.unsent_bytes.positive?
          IO.select([link.io], writing, nil, [left, link.patience].min) unless link.more?
          link.turn
        end
      end
    end
  end
end
