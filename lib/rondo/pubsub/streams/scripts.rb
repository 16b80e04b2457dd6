# frozen_string_literal: true

# What Redis runs for channels with a history. Each script is one step for Redis, so nothing comes between a message
# and its id. Used by publisher.rb, tracks.rb and pump.rb; decision 66 has the reasons.
#
# Keys of an application have one hash tag, so that a Redis Cluster has them in one place:
#   {PREFIX}:begin    the id at which this Redis began to keep messages; a Redis that lost all has another one
#   {PREFIX}:clock    the last id that was given, over all channels
#   {PREFIX}:by:NAME  of a publisher: the number of the last message that was written
#   {PREFIX}:m:NAME   of a channel: its last id
#   {PREFIX}:s:NAME   the stream of a channel; each entry has the id before it
#   {PREFIX}:b:NAME   the bytes of the messages in it up to an id, if a rule limits them; counted anew for another id
#
# Ids are microseconds by the clock of Redis, and ascend over all channels.
# SPDX-License-Identifier: MIT

require "digest"
require "rondo/pubsub/engine"

module Rondo
  module PubSub
    class RedisStreams < Redis
      # Scripts and the names of keys.
      # @api private
      module Scripts
        # Bytes of messages in one answer, and how many: while Redis runs a script, it serves nobody else.
        PAGE = 4 << 20
        PAGE_MESSAGES = 1000
        # Seconds that Redis knows the last number of a publisher: longer than any outage that it survives.
        PUBLISHER_TTL = 7 * 86_400
        # Milliseconds that the last id of a channel is known at least.
        LAST_TTL = 86_400_000

        # begin, the last id that was given, and what time it is.
        TIMES = <<~LUA
          local time = redis.call('TIME')
          local now = time[1] * 1000000 + time[2]
          local clock = tonumber(redis.call('GET', KEYS[2]) or 0)
          local began = tonumber(redis.call('GET', KEYS[1]) or 0)
          local function text(number) return string.format('%.0f', number) end
          if began == 0 then
            began = math.max(now, clock + 1, tonumber(ARGV[1]) + 1)
            clock = began
            redis.call('SET', KEYS[1], text(began))
            redis.call('SET', KEYS[2], text(clock))
          end
        LUA

        # KEYS: begin, clock, by, m, s, b. ARGV: highest id known, channel, number, number before it, last id known of
        # the channel, size, ttl in ms, kind, message, number up to which the publisher has answers, limit of bytes,
        # channel of the shard or nothing. Answers with the id, or 0 for a message that was written before. What was
        # acknowledged and is lost is not waited for. In a shard only patterns need that the message goes to all nodes.
        PUBLISH = (TIMES + <<~LUA).freeze
          local written = tonumber(redis.call('HGET', KEYS[3], 'number') or -1)
          local number, before = tonumber(ARGV[3]), tonumber(ARGV[4])
          if written >= number then return 0 end
          if written < before and before > tonumber(ARGV[10]) then return redis.error_reply('EARLY a message before this one is missing') end
          local id = text(math.max(now, clock + 1, tonumber(ARGV[1]) + 1))
          local previous = text(math.max(tonumber(redis.call('GET', KEYS[4]) or 0), tonumber(ARGV[5])))
          local size, ttl = tonumber(ARGV[6]), tonumber(ARGV[7])
          local limit = tonumber(ARGV[11])
          local oldest = ttl > 0 and math.max(id - ttl * 1000, 0) or 0
          if limit == 0 then
            redis.call('XADD', KEYS[5], 'MAXLEN', size, id .. '-0', 'p', previous, 'k', ARGV[8], 'm', ARGV[9])
          else
            local bytes, at = string.match(redis.call('GET', KEYS[6]) or '', '(%d+) (%d+)')
            if at ~= previous then
              bytes = 0
              for _, entry in ipairs(redis.call('XRANGE', KEYS[5], '-', '+')) do bytes = bytes + #entry[2][6] end
            end
            redis.call('XADD', KEYS[5], id .. '-0', 'p', previous, 'k', ARGV[8], 'm', ARGV[9])
            bytes = bytes + #ARGV[9]
            for count = redis.call('XLEN', KEYS[5]), 2, -1 do
              local first = redis.call('XRANGE', KEYS[5], '-', '+', 'COUNT', 1)[1]
              if count <= size and bytes <= limit and tonumber(string.match(first[1], '%d+')) >= oldest then break end
              redis.call('XDEL', KEYS[5], first[1])
              bytes = bytes - #first[2][6]
            end
            if redis.call('XLEN', KEYS[5]) == 1 then bytes = #ARGV[9] end
            redis.call('SET', KEYS[6], text(bytes) .. ' ' .. id)
            if ttl > 0 then redis.call('PEXPIRE', KEYS[6], ttl) end
          end
          redis.call('SET', KEYS[2], id)
          if ttl > 0 then
            redis.call('XTRIM', KEYS[5], 'MINID', text(oldest) .. '-0')
            redis.call('PEXPIRE', KEYS[5], ttl)
            redis.call('SET', KEYS[4], id, 'PX', text(math.max(2 * ttl, #{LAST_TTL})))
          else
            redis.call('PERSIST', KEYS[5])
            redis.call('SET', KEYS[4], id)
          end
          redis.call('HSET', KEYS[3], 'number', ARGV[3])
          redis.call('EXPIRE', KEYS[3], #{PUBLISHER_TTL})
          local head = '\\0rondo ' .. text(began) .. ' ' .. previous .. ' ' .. id .. ' ' .. ARGV[8] .. '\\n'
          if ARGV[12] ~= '' then redis.call('SPUBLISH', ARGV[12], head .. ARGV[9]) end
          if ARGV[12] == '' or redis.call('PUBSUB', 'NUMPAT') > 0 then
            redis.call('PUBLISH', ARGV[2], head .. ARGV[9])
          end
          return tonumber(id)
        LUA

        # KEYS: begin, clock, m, s. ARGV: highest id known, after which id, up to which ("+": all), bytes of messages,
        # "newest" or "next". Answers with begin, clock, time, last id of the channel, whether there is more, and
        # messages: id, the one before, kind, text. "newest" gives the newest ones that fit, the last one first, "next"
        # those that follow. A key of another type has no messages.
        READ = (TIMES + <<~LUA).freeze
          local newest = ARGV[5] == 'newest'
          local after, limit = tonumber(ARGV[2]), tonumber(ARGV[4])
          local last = redis.call('GET', KEYS[3]) or '0'
          local found, bytes, from, more = {}, 0, newest and ARGV[3] or text(after + 1), 0
          repeat
            local page = newest and redis.pcall('XREVRANGE', KEYS[4], from, text(after + 1), 'COUNT', 64)
                                 or redis.pcall('XRANGE', KEYS[4], from, ARGV[3], 'COUNT', 64)
            for _, entry in ipairs(page) do
              local id = string.match(entry[1], '%d+')
              local fields = entry[2]
              if #found == #{PAGE_MESSAGES} or bytes > 0 and bytes + #fields[6] > limit then more = 1 break end
              bytes = bytes + #fields[6] + 1
              found[#found + 1] = { id, fields[2], fields[4], fields[6] }
              from = newest and text(id - 1) or text(id + 1)
            end
          until more == 1 or #page < 64
          return { text(began), text(clock), text(math.max(now, clock)), last, more, found }
        LUA

        # KEYS: begin, clock. ARGV: highest id known. Answers with the last id that was given.
        CLOCK = "#{TIMES}return text(math.max(clock, began))\n".freeze

        # What is known here is compared with Redis for so many microseconds: then it may have expired there.
        MEMORY = LAST_TTL * 1000 / 2

        # KEYS: begin, clock, by, m, s. ARGV: highest id known, last number of the publisher that was acknowledged, its
        # id, last message of the channel that was delivered. A Redis that lacks one of them, or whose last id is below
        # the highest, went back, as a replica does that was behind when it became the master: it begins anew, and
        # everybody is told. A message that was trimmed or deleted is not lacking: nothing older is there, and the next
        # one does not name an older one. Answers: begin.
        CHECK = (TIMES + <<~LUA).freeze
          local number, at, newest = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
          local function known(id) return id > began and now - id < #{MEMORY} end
          local written = tonumber(redis.call('HGET', KEYS[3], 'number') or -1)
          local lost = clock < tonumber(ARGV[1]) or known(at) and written < number
          local function range(...) return redis.pcall('XRANGE', KEYS[5], ...) end
          if known(newest) and #range(ARGV[4], ARGV[4]) == 0 then
            lost = lost or tonumber(redis.call('GET', KEYS[4]) or 0) < newest
            lost = lost or #range('-', ARGV[4], 'COUNT', 1) > 0
            local after = range(text(newest + 1), '+', 'COUNT', 1)[1]
            lost = lost or after ~= nil and tonumber(after[2][2]) < newest
          end
          if lost then
            began = math.max(now, clock + 1, tonumber(ARGV[1]) + 1)
            redis.call('SET', KEYS[1], text(began))
            redis.call('SET', KEYS[2], text(began))
          end
          return text(began)
        LUA

        ALL = [PUBLISH, READ, CLOCK, CHECK].freeze
        SHA = ALL.to_h { |script| [script, Digest::SHA1.hexdigest(script)] }.freeze

        # Of one application in one Redis.
        class Keys
          # @param prefix [String, nil]
          def initialize(prefix)
            @tag = "{#{Keys.tag(prefix)}}:".b
            @channels = prefix ? "#{prefix}:".b : "".b
          end

          # @param prefix [String, nil]
          # @return [String] what stands in all keys, in braces
          def self.tag(prefix)
            "rondo#{":#{prefix}" if prefix}"
          end

          # @return [Array<String>] of begin and clock
          def times
            ["#{@tag}begin", "#{@tag}clock"]
          end

          # @param publisher [String]
          # @return [String]
          def by(publisher)
            "#{@tag}by:#{publisher}"
          end

          # @param channel [String]
          # @return [Array<String>] last id and stream
          def of(channel)
            ["#{@tag}m:".b << channel.b, "#{@tag}s:".b << channel.b]
          end

          # @param channel [String]
          # @return [String] of its bytes
          def bytes_of(channel)
            "#{@tag}b:".b << channel.b
          end

          # @param channel [String]
          # @return [String] what it is called in Redis
          def channel(channel)
            @channels + channel.b
          end

          # @param channel [String]
          # @return [String] what it is called in a shard of a cluster
          def shard(channel)
            "#{@tag}c:".b << channel.b
          end

          # @return [String] a channel of the shard that every server listens to: when the slot moves, it is told
          def anchor
            "#{@tag}anchor"
          end

          # @param name [String] in a shard
          # @return [String] what the channel is called in Redis
          def from_shard(name)
            channel(name.b.delete_prefix("#{@tag}c:"))
          end

          # @param name [String] in Redis
          # @return [String] the channel
          def name(name)
            @channels.empty? ? name : name.b.delete_prefix(@channels).force_encoding(Encoding::UTF_8)
          end
        end

        module_function

        # @return [Array<String>] a command
        def call(script, keys, arguments)
          ["EVALSHA", SHA[script], keys.size, *keys, *arguments]
        end
      end
    end
  end
end
