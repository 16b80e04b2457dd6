# frozen_string_literal: true

# What is public, as YARD sees it; .yardopts loads this file. Public is what applications may use: each constant and
# each public method of {PublicApi::ROOTS} and below, but for what has `@api private` itself, or stands in something
# that has it. `@api public` is the exception in something private. The verbs of settings, which are no methods in the
# source, get their words here. test/project/signatures_test.rb compares this with sig/ and with the
# loaded library. The gems of gems/ have the same rules.
# SPDX-License-Identifier: MIT

require "yard"

# Completes what YARD has read.
module PublicApi
  # What stands elsewhere is of other libraries, in whose place or beside which Rondo stands.
  ROOTS = %w[Rondo Rack::Handler::Rondo Rackup::Handler::Rondo Iodine Up Rackup::Handler::Up].freeze
  VERBS = "Rondo::Configuration::Verbs"

  module_function

  # After the last file, because a namespace may stand in several of them.
  # @return [void]
  def complete
    restore_words
    add_verbs
    YARD::Registry.all.each do |object|
      object.add_tag(YARD::Tags::Tag.new(:api, "private")) if !object.has_tag?(:api) && !public?(object)
    end
  end

  # YARD takes the head of each file that opens the module for its words.
  # @return [void]
  def restore_words
    words = File.read(File.expand_path("../../lib/rondo.rb", __dir__))[/((?:^# .*\n)+)module Rondo$/, 1]
    YARD::Registry.at("Rondo")&.docstring = words.gsub(/^# ?/, "")
  end

  # @param object [YARD::CodeObjects::Base]
  # @return [Boolean] whether applications may use it
  def public?(object)
    return false if object.respond_to?(:visibility) && object.visibility != :public
    return object.tag(:api).text == "public" if object.has_tag?(:api)
    return true if ROOTS.include?(object.path)

    !object.root? && public?(object.namespace)
  end

  # @return [Array<YARD::CodeObjects::Base>] what is public, without the spaces that only hold it
  def objects
    YARD::Registry.all(:class, :module, :constant, :method).select { |object| public?(object) }
  end

  # The verbs that the source makes from the tables of settings. Without the compiled extension there are none.
  # @return [void]
  def add_verbs
    space = YARD::Registry.at(VERBS) or return
    generated_verbs.each do |verb|
      next if YARD::Registry.at("#{VERBS}##{verb.name}")

      method = YARD::CodeObjects::MethodObject.new(space, verb.name)
      method.parameters = verb.parameters
      method.docstring = verb.docstring
      method.signature = "def #{verb.name}"
      method.add_file("lib/rondo/config/verbs.rb")
    end
    space.meths(inherited: false, scope: :instance).each { |verb| complete_verb(verb) }
  end

  # All verbs are alike in this, so the source says it once, at the class.
  # @param verb [YARD::CodeObjects::MethodObject]
  # @return [void]
  def complete_verb(verb)
    { return: "void", raise: "Rondo::ConfigurationError" }.each do |name, type|
      verb.add_tag(YARD::Tags::Tag.new(name, nil, [type])) unless verb.has_tag?(name)
    end
  end

  # @return [Array<Verb>]
  def generated_verbs
    require_relative "verbs"
    GeneratedVerbs.all
  rescue LoadError
    []
  end
end

YARD::Parser::SourceParser.after_parse_list { PublicApi.complete }
