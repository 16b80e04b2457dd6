# backtick_javascript: true
# frozen_string_literal: true

# What JavaScript's expressions lack, and Rack's have: parts with other flags (JavaScript has flags only for a whole
# expression; Rack unites some that ignore case with others that have no letters), and several groups of one name (all
# but the first get another name, and are found by the first one's).
# SPDX-License-Identifier: MIT

`
  const GROUP = /\(\?<([A-Za-z_]\w*)>/g;

  function renamed(source) {
    const seen = new Map();
    return source.replace(GROUP, (group, name) => {
      const count = (seen.get(name) || 0) + 1;
      seen.set(name, count);
      return count === 1 ? group : "(?<" + name + "$" + count + ">";
    });
  }

  // As Opal's own, without its warning about the flags of parts.
  Opal.regexp = (parts, flags) => {
    const source = parts.map((part) => (part instanceof RegExp ? part.source : part) || "(?:)").join("");
    try {
      return new RegExp(source, flags || "");
    } catch (error) {
      if (!/Duplicate capture group/.test(error.message)) throw error;
      return new RegExp(renamed(source), flags || "");
    }
  };
`

# Opal's matches.
class MatchData
  alias initialize_without_groups initialize

  def initialize(regexp, match_groups, no_matchdata: false)
    initialize_without_groups(regexp, match_groups, no_matchdata: no_matchdata)
    `self.groups = match_groups.groups || {}`
  end

  # @return [Hash{String => String, nil}]
  def named_captures
    `Object.entries(self.groups)`.each_with_object({}) do |(name, value), found|
      first = name.split("$").first
      found[first] = `value == null ? nil : value` unless found[first]
    end
  end
end

# Opal's expressions.
class Regexp
  class << self
    alias union_of_one_kind union

    # @return [Regexp] it ignores case if one of the parts does
    def union(*parts)
      parts = parts.first if parts.size == 1 && parts.first.is_a?(Array)
      kinds = parts.grep(Regexp).map { |part| part.options & IGNORECASE }.uniq
      return union_of_one_kind(*parts) if kinds.size < 2

      union_of_one_kind(*parts.map { |part| part.is_a?(Regexp) ? Regexp.new(part.source, IGNORECASE) : part })
    end
  end
end
