// The compiled application, and the few things that the engine asks of Opal. A master never loads it.
// SPDX-License-Identifier: MIT

"use strict";

const ruby = {
  Opal: null,
  nil: null,

  // Loads Opal with the application, and runs its config.ru. `engine` is what the Ruby side calls `Opal.rondo`.
  // Returns the application; throws what config.ru raises.
  load(path, engine) {
    const { boot, application } = require(path);
    ruby.Opal = boot(engine);
    ruby.nil = ruby.Opal.nil;
    return ruby.constant("Rondo", "Rackup").$load(application);
  },

  // Whether the object has a method. For each name that is called somewhere, Opal gives every object one that raises
  // NoMethodError, and marks it.
  has(object, method) {
    const found = object[`$${method}`];
    return found !== undefined && found !== null && !found.$$stub;
  },

  // Calls a method with a block.
  send(object, method, args, block) {
    return ruby.Opal.send(object, method, args, block);
  },

  isString(value) {
    return typeof value === "string" || value instanceof String;
  },

  // Runs the function with each pair of a Hash, or of anything with `each`.
  eachPair(pairs, visit) {
    if (pairs.$$is_hash) {
      pairs.forEach((value, key) => visit(key, value));
    } else {
      ruby.send(pairs, "each", [], (...pair) => {
        const [key, value] = pair.length === 1 && Array.isArray(pair[0]) ? pair[0] : pair;
        visit(key, value);
        return ruby.nil;
      });
    }
  },

  // constant("Rondo", "Client")
  constant(...names) {
    return names.reduce((module, name) => module.$const_get(name), ruby.Opal.Object);
  },

  // An exception of Ruby.
  error(names, message) {
    return ruby.constant(...names).$new(message);
  },
};

module.exports = ruby;
