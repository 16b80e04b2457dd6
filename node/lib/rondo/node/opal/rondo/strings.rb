# backtick_javascript: true
# frozen_string_literal: true

# Bytes in strings of JavaScript. Opal has a binary string as an object with one character for each byte, and it does
# not look at the bytes when the encoding of a string is changed. Here it does.
# SPDX-License-Identifier: MIT

# Opal's strings, with the answers that Ruby gives about bytes.
class String
  # @return [Boolean] false for text with half a surrogate pair
  def valid_encoding?
    `typeof self === "string" || !self.encoding["$binary?"]() ? self.isWellFormed() : true`
  end

  # @return [String] the same bytes; BINARY ones that become UTF-8 are decoded, and the other way round
  def force_encoding(encoding)
    `Opal.rondo.text.forceEncoding(self, String(encoding.$to_s()).toUpperCase())`
  end

  # @return [String] the bytes of this string
  def b
    `Opal.rondo.text.binary(self)`
  end

  # @return [Integer]
  def bytesize
    `Opal.rondo.text.byteLength(self)`
  end

  # @param replacement [String] what stands for half a surrogate pair
  # @return [String]
  def scrub(replacement = "\uFFFD")
    `Opal.rondo.text.scrub(self, replacement)`
  end
end
