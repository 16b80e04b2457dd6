// Patterns of channel names, with the signs of Redis: `*`, `?`, `[a-z]`, `[^x]`, and `\` before a character that stands
// for itself. Matching takes time in proportion to the length of the name times that of the pattern, for any pattern.
// SPDX-License-Identifier: MIT

"use strict";

const STAR = { star: true };

// One character of the pattern as a test of a character, and where the pattern goes on.
function item(chars, at) {
  const char = chars[at];
  if (char === "*") return [STAR, at + 1];
  if (char === "?") return [() => true, at + 1];
  if (char === "[") return set(chars, at + 1);
  const literal = char === "\\" && at + 1 < chars.length ? chars[at + 1] : char;
  return [(other) => other === literal, at + (literal === char && char !== "\\" ? 1 : Math.min(2, chars.length - at))];
}

function set(chars, from) {
  let at = from;
  const negated = chars[at] === "^";
  if (negated) at += 1;
  const ranges = [];
  while (at < chars.length && chars[at] !== "]") {
    if (chars[at] === "\\" && at + 1 < chars.length) at += 1;
    const low = chars[at];
    const isRange = chars[at + 1] === "-" && at + 2 < chars.length;
    const high = isRange ? chars[at + 2] : low;
    ranges.push(low <= high ? [low, high] : [high, low]);
    at += isRange ? 3 : 1;
  }
  const test = (other) => ranges.some(([low, high]) => low <= other && other <= high) !== negated;
  return [test, at + 1];
}

function parse(pattern) {
  const chars = [...pattern];
  const items = [];
  for (let at = 0; at < chars.length;) {
    const [made, next] = item(chars, at);
    if (made !== STAR || items.at(-1) !== STAR) items.push(made);
    at = next;
  }
  return items;
}

// Goes back only to the last star, so nothing is tried more than once for each place of it.
function matches(items, name) {
  const chars = [...name];
  let at = 0;
  let position = 0;
  let star = -1;
  let resume = 0;
  while (position < chars.length) {
    const current = items[at];
    if (current === STAR) {
      star = at;
      at += 1;
      resume = position;
    } else if (current !== undefined && current(chars[position])) {
      at += 1;
      position += 1;
    } else if (star >= 0) {
      at = star + 1;
      resume += 1;
      position = resume;
    } else {
      return false;
    }
  }
  while (items[at] === STAR) at += 1;
  return at === items.length;
}

// Returns a function from a name to whether it matches.
function compile(pattern) {
  const items = parse(pattern);
  return (name) => matches(items, name);
}

module.exports = { compile };
