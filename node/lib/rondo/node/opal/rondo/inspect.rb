# backtick_javascript: true
# frozen_string_literal: true

# `inspect` of Strings and Hashes, in a shorter way where there is nothing to escape: applications show their env, and
# Opal's own takes ten times as long.
# SPDX-License-Identifier: MIT

%x{
  // Quotes, backslashes, what could be an interpolation, and everything beyond visible ASCII.
  const SPECIAL = /[^ !$-\[\]-~]/;
  const active = new Set();

  function inspect(value) {
    if (typeof value === "string") return SPECIAL.test(value) ? value.$inspect_with_escapes() : '"' + value + '"';
    if (value === nil) return "nil";
    return #{Opal.inspect(`value`)};
  }

  // Of a BINARY String.
  function inspectBytes(string) {
    return string.$inspect_with_escapes().replace(/[\x7f-\xff]/g, (byte) => {
      return "\\x" + byte.charCodeAt(0).toString(16).toUpperCase();
    });
  }

  function inspectPairs(hash) {
    if (active.has(hash)) return "{...}";
    active.add(hash);
    try {
      const parts = [];
      Opal.hash_each(hash, false, (key, value) => {
        parts.push(inspect(key) + "=>" + inspect(value));
        return [false, false];
      });
      return "{" + parts.join(", ") + "}";
    } finally {
      active.delete(hash);
    }
  }
}

# Opal's strings.
class String
  alias inspect_with_escapes inspect

  def inspect
    `typeof self === "string" || !self.encoding["$binary?"]() ? inspect(self.toString()) : inspectBytes(self)`
  end
end

# Opal's hashes.
class Hash
  def inspect
    `inspectPairs(self)`
  end

  alias to_s inspect
end
