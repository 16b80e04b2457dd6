# frozen_string_literal: true

# How a client is present: the methods of Rondo::Client. The rest is loaded when one of them is called.
# SPDX-License-Identifier: MIT

module Rondo
  # Its other methods are in the extension.
  class Client
    # From now on the id is present in the room, until {#leave} or the end of the connection. A client has one id in a
    # room: another call replaces id and info. Any thread.
    # @param room [String, Symbol] 1 to 256 bytes of UTF-8
    # @param id [String] 1 to 256 bytes of UTF-8; several clients may have the same id
    # @param info [Hash, Array, String, nil] what {Presence.list} says of the id; up to `info_bytes` as JSON
    # @return [Boolean] false: the client is closed, or a limit is reached, which is logged
    # @raise [ArgumentError, TypeError] for a room, an id or info that is not valid
    def join(room, id:, info: nil)
      Presence.join(self, room, id, info)
    end

    # Any thread.
    # @param room [String, Symbol]
    # @return [Boolean] whether it was there
    # @raise [ArgumentError, TypeError] as {#join}
    def leave(room)
      Presence.leave(self, room)
    end
  end
end
