# backtick_javascript: true
# frozen_string_literal: true

# Ruby's digest is written in C. Node has the same functions.
# SPDX-License-Identifier: MIT

require "base64"

# Digests of whole strings.
module Digest
  # One algorithm.
  class Base
    class << self
      # @return [String] BINARY
      def digest(text)
        `Opal.rondo.text.binaryOf(#{bytes(text)}.toString("latin1"))`
      end

      # @return [String]
      def hexdigest(text)
        `#{bytes(text)}.toString("hex")`
      end

      # @return [String]
      def base64digest(text)
        `#{bytes(text)}.toString("base64")`
      end

      private

      def bytes(text)
        `require("crypto").createHash(#{self::ALGORITHM}).update(Opal.rondo.text.toBytes(text)).digest()`
      end
    end
  end

  # The names of Ruby.
  class MD5 < Base
    ALGORITHM = "md5"
  end

  class SHA1 < Base
    ALGORITHM = "sha1"
  end

  class SHA256 < Base
    ALGORITHM = "sha256"
  end

  class SHA384 < Base
    ALGORITHM = "sha384"
  end

  class SHA512 < Base
    ALGORITHM = "sha512"
  end
end
