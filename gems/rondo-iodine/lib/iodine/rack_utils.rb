# frozen_string_literal: true

# Decoding of URLs, and dates, as iodine offers them to Rack. Results are BINARY, but for `unescape`.
# SPDX-License-Identifier: MIT

require "time"

module Iodine
  module Rack
    # May stand in for methods of Rack::Utils, see {Iodine.patch_rack}.
    module Utils
      BROKEN = /%(?!\h\h)/n
      private_constant :BROKEN

      class << self
        # @param text [String]
        # @return [String] a new one
        # @raise [RuntimeError, TypeError]
        def decode_url(text)
          decode(text.is_a?(String) ? text.b.tr("+", " ") : text, "URL string")
        end

        # @param text [String] is changed
        # @return [String] the same
        # @raise [RuntimeError, TypeError]
        def decode_url!(text)
          replace(text) { decode_url(text) }
        end

        # @param text [String] in which + is a +
        # @return [String] a new one
        # @raise [RuntimeError, TypeError]
        def decode_path(text)
          decode(text, "URL path string")
        end

        # @param text [String] is changed
        # @return [String] the same
        # @raise [RuntimeError, TypeError]
        def decode_path!(text)
          replace(text) { decode_path(text) }
        end

        # @param time [Time, Integer] nothing or 0: now
        # @return [String] "Sun, 06 Nov 1994 08:49:37 GMT"
        def time2str(time = 0)
          date(time, " ", "GMT")
        end

        # What iodine gives under this name. Its two names stand for each other's format.
        # @param time [Time, Integer] 0: now
        # @return [String] "Sun, 06 Nov 1994 08:49:37 -0000"
        def rfc2109(time)
          date(time, " ", "-0000")
        end

        # @param time [Time, Integer] 0: now
        # @return [String] "Sun, 6-Nov-1994 08:49:37 GMT"
        def rfc2822(time)
          date(time, "-", "GMT", day: "%-d")
        end

        private

        def decode(text, what)
          Base.check(text, String)
          text = text.b
          raise "Malformed #{what} - couldn't decode." if text.match?(BROKEN)

          text.gsub(/%(\h\h)/n) { $1.hex.chr }
        end

        def replace(text)
          text.replace(yield.force_encoding(text.encoding))
        rescue RuntimeError => e
          raise e.message.sub("decode.", "decode (String might have been partially altered).")
        end

        def date(time, between, zone, day: "%d")
          time = time.to_i
          time = time.zero? ? Time.now.utc : Time.at(time).utc
          time.strftime("%a, #{[day, "%b", "%Y"].join(between)} %H:%M:%S #{zone}").b
        end
      end
    end
  end

  module Base
    module MonkeyPatch
      # What {Iodine.patch_rack} gives to Rack::Utils.
      module RackUtils
        # @param text [String]
        # @param encoding [Encoding, nil]
        # @return [String] in UTF-8, or that encoding
        def unescape(text, encoding = nil)
          encoding = Encoding::UTF_8 unless encoding.is_a?(Encoding)
          Rack::Utils.decode_url(text).force_encoding(encoding)
        end

        def unescape_path(text)
          Rack::Utils.decode_path(text)
        end

        def rfc2109(time)
          Rack::Utils.rfc2109(time)
        end

        def rfc2822(time)
          Rack::Utils.rfc2822(time)
        end

        extend self # rubocop:disable Style/ModuleFunction -- the methods go to Rack::Utils
      end
    end
  end

  # Puts the methods of {Base::MonkeyPatch::RackUtils} in the place of Rack's.
  # @return [void]
  def self.patch_rack
    Kernel.require "rack"
    Base::MonkeyPatch::RackUtils.instance_methods(false).each do |name|
      ::Rack::Utils.define_singleton_method(name, Base::MonkeyPatch::RackUtils.instance_method(name))
    end
  end
end
