# frozen_string_literal: true

# A program: loads what applications may load of a gem, whose name is its argument, and writes as JSON what reflection
# finds there. Each name is of a constant or a method, as YARD writes it; with a method come its parameters, or nil if it
# is written in C.
# SPDX-License-Identifier: MIT

require "json"
require "rackup"

# By gem: what is loaded, and the spaces that are read.
INTERFACES = {
  "rondo" => [%w[rondo rondo/not_compiled rondo/config/configuration rackup/handler/rondo rondo/rails/event_stream
                 rondo/rails/cable/publisher], %w[Rondo Rackup::Handler::Rondo]],
  "rondo-iodine" => [%w[iodine rackup/handler/iodine], %w[Iodine]],
  "rondo-up" => [%w[up rackup/handler/up], %w[Up Rackup::Handler::Up]]
}.freeze

# What is in a space, and in those below it.
class PublicNames
  # @return [Hash{String => Hash}] by name: kind, visibility and parameters
  attr_reader :found

  def initialize
    @found = {}
    @seen = {}.compare_by_identity
  end

  def read(name, space)
    return unless @seen[space].nil?

    @seen[space] = name
    @found[name] = { kind: space.class.name.downcase, visibility: "public" }
    read_methods("#{name}.", space.singleton_class, space.singleton_methods(false))
    read_methods("#{name}#", space, space.public_instance_methods(false))
    hidden = space.private_instance_methods(false)
    read_methods("#{name}#", space, hidden - [:initialize], "private")
    read_methods("#{name}#", space, hidden & [:initialize])
    space.constants(false).each { |constant| read_constant("#{name}::#{constant}", space.const_get(constant)) }
  end

  private

  def read_constant(name, value)
    return read(name, value) if value.is_a?(Module) && Module.instance_method(:name).bind_call(value) == name

    @found[name] = { kind: "constant", visibility: "public" }
  end

  def read_methods(prefix, space, names, visibility = "public")
    names.each do |name|
      method = space.instance_method(name)
      @found["#{prefix}#{name}"] = { kind: "method", visibility: visibility,
                                     parameters: method.source_location && method.parameters }
    end
  end
end

libraries, spaces = INTERFACES.fetch(ARGV.first)
libraries.each { |library| require library }
names = PublicNames.new
spaces.each { |space| names.read(space, Object.const_get(space)) }
puts JSON.generate(names.found)
