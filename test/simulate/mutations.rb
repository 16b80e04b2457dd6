# frozen_string_literal: true

# Mistakes that somebody could make in the protocol. tools/run_mutations puts each one in, and shows which history, or
# which test, notices it.
# SPDX-License-Identifier: MIT

module Simulate
  # `from` is in the file once.
  Mutation = Struct.new(:name, :file, :from, :to)

  TRACKS = "lib/rondo/pubsub/streams/tracks.rb"
  PUBLISHER = "lib/rondo/pubsub/streams/publisher.rb"
  RETURNED = "lib/rondo/pubsub/streams/returned.rb"
  PUMP = "lib/rondo/pubsub/streams/pump.rb"
  REDIS_PUMP = "lib/rondo/pubsub/redis/pump.rb"
  SCRIPTS = "lib/rondo/pubsub/streams/scripts.rb"
  MODEL = "test/support/streams_model.rb"
  HUB = "test/simulate/hub.rb"
  CLIENTS = "test/simulate/clients.rb"

  MUTATIONS = [
    # ---- what is new ----
    ["a channel begins before PING is answered", TRACKS, "@listener.ask([\"PING\"]) do\n              @marking.each", "1.times do\n              @marking.each"],
    ["a message before the mark is no beginning", TRACKS, "          begin_before(item)\n", ""],
    ["the mark goes over a message that came", TRACKS, "track.last ||= mark", "track.last = mark"],
    ["what came of an earlier subscription is not gone on from", TRACKS, "@behind[item.channel] = track if @joining.delete(item.channel)", "@joining.delete(item.channel)"],
    ["a channel begins before SUBSCRIBE is confirmed", TRACKS, "while @joining.any? && yield(@joining.each_value.first.number)", "while @joining.any?"],
    ["a channel is read before SUBSCRIBE is confirmed", TRACKS, "while @behind.any? && yield(@behind.each_value.first.number)", "while @behind.any?"],
    ["a publisher does not wait for the mark", PUMP, "super && @tracks.begun?(number)", "super"],
    ["SUBSCRIBE is not sent again", TRACKS, "@behind, @joining = @tracks.partition { |_, track| track.last }.map(&:to_h)", "@behind, @joining = {}, @tracks.reject { |_, track| track.last }"],
    # ---- what is missing ----
    ["live messages overtake what is read", TRACKS, "@is_blocked || gathered? || lacking?", "@is_blocked || gathered?"],
    ["live messages overtake what has been read", TRACKS, "@is_blocked || gathered? || lacking?", "@is_blocked || @held.any? || lacking?"],
    ["live messages overtake the end of what has been read", TRACKS, "@is_blocked || gathered? || lacking?", "@is_blocked || @held.any? || @filled.any? || lacking?"],
    ["live messages overtake those that are held", TRACKS, "@is_blocked || gathered? || lacking?", "@is_blocked || @filled.any? || @ends.any? || lacking?"],
    ["live messages overtake what the hub did not take", TRACKS, "@is_blocked || gathered? || lacking?", "@filled.any? || @ends.any? || lacking?"],
    ["what is read while PING is on its way is not behind it", TRACKS, "release unless lacking? || @is_ahead", "release unless lacking?"],
    ["what is read and held is not sorted", TRACKS, ".sort_by(&:id)", ""],
    ["what was read and came, too, comes twice", TRACKS, "items.uniq { |item| item.text ? item.id : item }", "items"],
    ["a gap of one channel is that of another", TRACKS, "item.text ? item.id : item", "item.id"],
    ["a message comes again", TRACKS, "track.last.nil? || item.id <= track.last", "track.last.nil?"],
    ["a message before it may be missing", TRACKS, "item.previous <= track.last && item.began <= track.last", "item.began <= track.last"],
    ["a Redis that lost all is the same", TRACKS, "item.previous <= track.last && item.began <= track.last", "item.previous <= track.last"],
    ["a lost life of Redis is no hole", TRACKS, "floor = [item.previous, item.began].max", "floor = item.previous"],
    ["a channel that Redis does not know had no messages", TRACKS, "forgotten > @reached ? forgotten : last.to_i", "last.to_i"],
    ["a hole at the end of a stream is none", TRACKS, "[*items, *@ends.values].filter_map", "items.filter_map"],
    ["a hole within a stream is none", TRACKS, "if floor > after\n", "if floor > after && item.id.nil?\n"],
    ["a hole before what is held is none", TRACKS, "holes = holes_of(items)", "holes = holes_of(in_order(@filled.to_a))"],
    ["what was lost behind an answer is a gap", TRACKS, "          return if read_again(holes)\n", ""],
    ["what names a message of nobody is read again and again", TRACKS, " && !@again.key?(hole.channel)", ""],
    ["what was not read has holes", TRACKS, "last = @ends.to_h { |channel, _| [channel, @tracks[channel].last] }", "last = @tracks.transform_values(&:last)"],
    ["only one page is read", TRACKS, "          return @wanted[track.channel] = found.last.first.to_i if more == 1\n", ""],
    ["the answer for a channel that was forgotten counts", TRACKS, "          return unless @tracks[track.channel].equal?(track)\n\n          found.each", "          found.each"],
    ["what the hub does not take is lost", TRACKS, "@is_blocked = !@outlet.item(item)", "@outlet.item(item)"],
    ["what is read of a connection that is lost stays", TRACKS, "          @reading = {}.compare_by_identity\n", "          @reading ||= {}.compare_by_identity\n"],
    # ---- copies ----
    ["a copy does not wait for PING", TRACKS, "        def read_copy(track, reply)\n          @listener.ask([\"PING\"]) do", "        def read_copy(track, reply)\n          1.times do"],
    ["a copy lacks what came while it was read", TRACKS, "          items.concat(track.recent.select { |item| item.id > newest })\n", ""],
    ["a copy may have holes", TRACKS, "two.previous if two.previous > one.id", "two.previous if two.previous > one.id + (1 << 60)"],
    ["a copy may lack the newest messages", TRACKS, "          holes << last if items.none? { |item| item.id == last }\n", ""],
    ["a copy may lack the oldest messages", TRACKS, "          holes << items.first.previous if items.any?\n", ""],
    ["a copy has only its newest page", TRACKS, "next read_copy(track, whole) if more.zero? || room <= 0", "next read_copy(track, whole)"],
    ["a copy goes on where it began", TRACKS, "ask_copy(commands, track, found.last.first.to_i - 1, room, whole)", "ask_copy(commands, track, found.first.first.to_i - 1, room, whole)"],
    ["a copy that the hub does not take is forgotten", TRACKS, "items) or ask_again(track)", "items)"],
    ["a copy is read of a channel that is not confirmed", TRACKS, "next unless !@copying[channel] && yield(number)", "next if @copying[channel]"],
    # ---- publishing ----
    ["a message does not wait for the one before it", PUBLISHER, "before = @sent", "before = -1"],
    ["a new connection goes on where the old one was", PUBLISHER, "        def forget_link\n          @sent = @answered", "        def forget_link\n          @sent"],
    ["Redis does not learn what a publisher has answers to", PUBLISHER, "entry.bytes, @answered,", "entry.bytes, -1,"],
    ["Redis does not learn the highest id", PUBLISHER, "words = [@tracks.seen,", "words = [0,"],
    ["a refused message is not sent again", REDIS_PUMP, "[*(@refused && [[@refused, false]]), *@commands&.unanswered]", "[*@commands&.unanswered]"],
    ["a refused message goes last", REDIS_PUMP, "[*(@refused && [[@refused, false]]), *@commands&.unanswered]", "[*@commands&.unanswered, *(@refused && [[@refused, false]])]"],
    ["a message that came back is not sent again", RETURNED, "          @held.insert(", "          [].insert("],
    ["a message that came back goes last", RETURNED, "@held.bsearch_index { |each| each.number > entry.number } || @held.size", "@held.size"],
    ["a message goes again before all have come back", RETURNED, " && !(@is_returning && @flying.positive?)", ""],
    ["what came back is lost with the connection", RETURNED, "@held.map { |entry| [entry, true] }", "[]"],
    ["what came back goes again out of turn with a new connection", RETURNED, ".sort_by { |entry, _| entry.number }", ".reverse"],
    ["who comes back names a message that came back", PUBLISHER, "          @sent = @answered\n        end\n\n        # The connection", "        end\n\n        # The connection"],
    ["what follows a message that is refused for good waits for it", PUMP, "next @publisher.answered(entry) unless", "next unless"],
    ["a message is answered before one that came back", PUBLISHER, " unless @returned.before?(entry.number)", ""],
    # ---- scripts, in the model ----
    ["a message is written twice", MODEL, "      return 0 if written >= number.to_i\n", ""],
    ["a message is written before the one before it", MODEL, "      return Refusal.new(\"EARLY\") if written < before.to_i && before.to_i > confirmed.to_i\n", ""],
    ["ids do not ascend when the clock goes back", MODEL, "id = [@now, @clock + 1, known.to_i + 1].max", "id = [@now, known.to_i + 1].max"],
    ["a message does not name the one before it", MODEL, "[@last[channel], last.to_i].max", "0"],
    ["a Redis that lost all has the life of before", MODEL, "zero?\n\n      @clock = @began = [@now, @clock + 1, known + 1].max", "zero?\n\n      @clock = @began = 1"],
    # ---- scripts, in Redis: the test of the model notices them ----
    ["the script writes twice", SCRIPTS, "if written >= number then return 0 end", ""],
    ["the script lets a message overtake", SCRIPTS, "if written < before and before > tonumber(ARGV[10])", "if false"],
    ["the script trims nothing by age", SCRIPTS, "redis.call('XTRIM', KEYS[5]", "local _ = ('XTRIM'"],
    ["the script reads every copy from its newest message on", SCRIPTS, "newest and ARGV[3] or", "newest and '+' or"],
    ["the script gives more bytes than were asked for", SCRIPTS, "bytes + #fields[6] > limit", "bytes + #fields[6] > limit * 2"],
    ["the script takes a Redis whose clock went back for the same", SCRIPTS, "local lost = clock < tonumber(ARGV[1]) or known(at)", "local lost = known(at)"],
    ["the script takes a Redis that has nothing older for the same", SCRIPTS, "after ~= nil and tonumber(after[2][2]) < newest", "false"],
    ["the script keeps one message more", SCRIPTS, "'MAXLEN', size,", "'MAXLEN', size + 1,"],
    # ---- the hub, in the model: the test of the twins notices them, too ----
    ["a replay may lack the oldest messages", HUB, "since != 0 && since < record.floor ? :gap : :whole", ":whole"],
    ["a replay has the last message again", HUB, "if id > since }", "if id >= since }"],
    ["a copy is given to who has seen more", HUB, "return true if topic.nil? || since <= topic.known || since <= record.last_id", "return true"],
    ["a copy for an earlier topic is used", HUB, "      return if topic.number != number\n", ""],
    ["a gap is not remembered", HUB, "      record.floor = [record.floor, id].max if record\n", ""],
    # ---- what is held back for a client, in the model: test_hold.c notices it in the core ----
    ["the answers for a client come one after the other", CLIENTS, "return if @waits.positive?", "return if @held.empty?"],
    ["what is held is given in the order in which it came", CLIENTS, "@held.sort_by.with_index { |event, index| [event[2], index] }", "@held"],
    ["a channel that nobody wants is still kept", HUB, "      @to_engine << [:unsubscribe, channel]\n      forget(channel)", "      @to_engine << [:unsubscribe, channel]"]
  ].map { |row| Mutation.new(*row) }.freeze

  # Those that no history of the first 4,000 notices. The first two may change nothing: nobody knows.
  OPEN = [
    ["what is held is given while something is read", TRACKS, "          @is_blocked = false if lacking? # it is sorted with what is read\n", ""],
    ["a copy has what did not come yet", TRACKS, "          items.select! { |item| item.id <= track.last }\n", ""],
    ["a reset among live messages has an id", CLIENTS, "return if type == :reset || !id.positive?", "return unless id.positive?"]
  ].map { |row| Mutation.new(*row) }.freeze
end
