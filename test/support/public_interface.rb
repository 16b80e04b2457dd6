# frozen_string_literal: true

# What a gem's public interface is: as reflection finds it (public_names.rb), as its source describes it (read_source.rb,
# tools/reference/public_api.rb), and as its signatures have it; and where these three differ.
# SPDX-License-Identifier: MIT

require "json"
require "open3"
require "rbs"
require "support/read_source"
require_relative "../../tools/reference/public_api"

# For test classes, which say of what gem: gem_name, and outermost, the beginnings of the names of what it defines.
module PublicInterface
  include ReadSource

  # Where each gem has its library and its signatures. Types of the first one are used by the others.
  FOLDERS = { "rondo" => ".", "rondo-iodine" => "gems/rondo-iodine", "rondo-up" => "gems/rondo-up" }.freeze
  SIGNATURES = FOLDERS.values.map { |folder| File.join(ReadSource::ROOT, folder, "sig") }.freeze
  # Rack 2 is not loaded beside Rackup. It has the same module.
  ELSEWHERE = %w[Rack Rack::Handler Rack::Handler::Rondo Rackup Rackup::Handler].freeze
  # Ruby 3.1 does not ask for them.
  OF_NEWER_RUBIES = %w[Rondo::Scheduler#io_select Rondo::Scheduler#io_write].freeze

  # @param least [Integer] public names that there are at any rate
  def assert_all_signed(least)
    read_the_source
    assert_operator public_names.size, :>, least
    assert_empty public_names.select { |name| words_of(name).nil? }, "without words"
    assert_empty public_names - signed.keys, "without a signature in sig/"
    assert_empty signed.keys - ELSEWHERE - OF_NEWER_RUBIES - found.keys, "signatures of what is not there"
    assert_empty hidden_and_signed, "signatures of what is private"
    assert_empty misfits, "signatures that do not fit their methods"
    assert_empty incomplete, "words without types"
  end

  private

  def found
    @found ||= begin
      program = File.join(ROOT, "test/support/public_names.rb")
      folders = FOLDERS.values.map { |folder| "-I#{File.join(ROOT, folder, "lib")}" }
      output, status = Open3.capture2(RbConfig.ruby, *folders, program, gem_name)
      assert status.success?
      JSON.parse(output)
    end
  end

  # What YARD does not know is public if the space is that has it.
  def public_names
    @public_names ||= found.select { |name, facts| facts["visibility"] == "public" && public?(name) }.keys
  end

  def public?(name)
    object = YARD::Registry.at(name)
    return PublicApi.public?(object) if object

    space = name[/\A(.*)(?:::|[.#])/, 1]
    !space.nil? && public?(space)
  end

  # A space that only holds public ones has no words.
  def words_of(name)
    object = YARD::Registry.at(name)
    object unless object.nil? || object.docstring.blank?(false)
  end

  # What a method takes and returns, each with its type.
  def incomplete
    public_names.filter_map do |name|
      object = words_of(name)
      next unless object&.type == :method

      tags = [object, *object.tags(:overload)].flat_map(&:tags)
      missing = tags.select { |tag| %w[param return].include?(tag.tag_name) && tag.types.nil? && tag.text.to_s.empty? }
      missing.push("@return") if tags.none? { |tag| %w[return yield yieldparam].include?(tag.tag_name) } && !made?(name)
      missing.concat(unnamed(object, tags))
      "#{name}: #{missing.join(", ")}" if missing.any?
    end
  end

  def made?(name)
    name.end_with?("#initialize", "=")
  end

  def unnamed(object, tags)
    return [] if object.parameters.nil? || object.tags(:overload).any?

    names = object.parameters.map { |name, _| name.to_s.delete("*&:") }.grep(/\A[a-z]/) - %w[block verbs after]
    (names - tags.select { |tag| %w[param yield].include?(tag.tag_name) }.map { |tag| tag.name.to_s }).map { |name| "@param #{name}" }
  end

  # @return [Hash{String => Array}] by name: visibility, and for a method its overloads
  def signed
    @signed ||= environment.class_decls.select { |type, _| ours?(type) }.each_with_object({}) do |(type, entry), names|
      name = plain(type)
      names[name] = ["public", []]
      entry.decls.each { |each| add_members(name, each.decl, names) }
    end.merge(signed_constants)
  end

  def signed_constants
    (environment.constant_decls.keys + environment.class_alias_decls.keys).select { |type| ours?(type) }.to_h { |type| [plain(type), ["public", []]] }
  end

  def add_members(name, decl, names)
    visibility = "public"
    decl.members.each do |member|
      case member
      when RBS::AST::Members::Private then visibility = "private"
      when RBS::AST::Members::MethodDefinition
        names["#{name}#{member.singleton? ? "." : "#"}#{member.name}"] =
          [visibility, member.overloads.map { |overload| overload.method_type.type }]
      when RBS::AST::Members::Alias then names["#{name}#{member.singleton? ? "." : "#"}#{member.new_name}"] = [visibility, []]
      when RBS::AST::Members::AttrReader, RBS::AST::Members::AttrAccessor
        names["#{name}##{member.name}"] = [visibility, []]
        names["#{name}##{member.name}="] = [visibility, []] if member.is_a?(RBS::AST::Members::AttrAccessor)
      end
    end
  end

  def environment
    @environment ||= begin
      loader = RBS::EnvironmentLoader.new
      SIGNATURES.each { |folder| loader.add(path: Pathname(folder)) }
      @core = RBS::Environment.from_loader(RBS::EnvironmentLoader.new).class_decls.keys
      RBS::Environment.from_loader(loader).resolve_type_names
    end
  end

  def ours?(type)
    !@core.include?(type) && type.to_s.start_with?(*outermost)
  end

  def plain(type)
    type.to_s.delete_prefix("::")
  end

  # Spaces that hold something public have to be named.
  def hidden_and_signed
    held = public_names.flat_map { |name| name.split("::").then { |parts| (1...parts.size).map { |n| parts.take(n).join("::") } } }
    signed.reject { |name, (visibility, _)| visibility == "private" || ELSEWHERE.include?(name) }.keys - public_names - held - OF_NEWER_RUBIES
  end

  def misfits
    signed.filter_map do |name, (visibility, overloads)|
      facts = found[name] or next
      next "#{name} is #{facts["visibility"]}" if facts["visibility"] != visibility && facts["kind"] == "method"
      next unless facts["parameters"]

      wrong = overloads.reject { |overload| fits?(overload, facts["parameters"]) }
      "#{name}: (#{wrong.map(&:param_to_s).join(") | (")}), but it takes #{facts["parameters"]}" if wrong.any?
    end
  end

  # Whatever the signature allows, the method takes.
  def fits?(overload, parameters)
    kinds = parameters.group_by(&:first).transform_values { |all| all.map { |_, name| name&.to_sym } }
    least = overload.required_positionals.size + overload.trailing_positionals.size
    most = overload.rest_positionals ? Float::INFINITY : least + overload.optional_positionals.size
    required = kinds.fetch("req", []).size
    allowed = kinds.key?("rest") ? Float::INFINITY : required + kinds.fetch("opt", []).size
    least >= required && most <= allowed && keywords_fit?(overload, kinds)
  end

  def keywords_fit?(overload, kinds)
    required = kinds.fetch("keyreq", [])
    known = required + kinds.fetch("key", [])
    return true if known.empty? && !kinds.key?("keyrest") && kinds.key?("rest") # they come as a Hash

    named = overload.required_keywords.keys + overload.optional_keywords.keys
    (required - overload.required_keywords.keys).empty? &&
      (kinds.key?("keyrest") || ((named - known).empty? && overload.rest_keywords.nil?))
  end
end
