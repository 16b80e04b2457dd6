# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Certificates for tests: an authority of their own, and pairs that it signs, as files of a folder.

require "openssl"

class Certificates
  # @!attribute certificate [String] path
  # @!attribute key [String] path
  Pair = Struct.new(:certificate, :key) do
    # @return [String] of an ssl:// address
    def query
      "cert=#{certificate}&key=#{key}"
    end
  end

  # @return [String] path of the authority's certificate
  attr_reader :authority

  # @param folder [String]
  # @param name [String] of the authority, and of its file
  # @param above [Certificates, nil] the authority that signs this one; nil: it signs itself
  def initialize(folder, name = "authority", above: nil)
    @folder = folder
    @serial = 0
    @key = OpenSSL::PKey::EC.generate("prime256v1")
    extend_it = lambda do |made, extensions|
      made.add_extension(extensions.create_extension("basicConstraints", "CA:TRUE", true))
      made.add_extension(extensions.create_extension("keyUsage", "keyCertSign, cRLSign", true))
    end
    @own = above ? above.certificate(name, @key, &extend_it) : certificate(name, @key, &extend_it)
    @authority = write("#{name}.pem", @own.to_pem)
  end

  # @param name [String]
  # @return [Certificates] of an authority that this one has signed
  def middle(name)
    Certificates.new(@folder, name, above: self)
  end

  # @param name [String] of the files
  # @param subject [String] common name
  # @param names [Array<String>] as OpenSSL writes them
  # @param days [Range] of validity, from now
  # @param password [String, nil] of the key
  # @param usage [String, nil] what it may be used for: "serverAuth"
  # @return [Pair]
  def pair(name, names: %w[DNS:localhost IP:127.0.0.1], key: OpenSSL::PKey::EC.generate("prime256v1"), days: -1..30,
           password: nil, usage: nil, subject: name)
    made = certificate(subject, key, days: days) do |one, extensions|
      one.add_extension(extensions.create_extension("subjectAltName", names.join(","))) unless names.empty?
      one.add_extension(extensions.create_extension("extendedKeyUsage", usage)) if usage
    end
    pem = password ? key.private_to_pem(OpenSSL::Cipher.new("aes-128-cbc"), password) : key.private_to_pem
    Pair.new(write("#{name}.pem", made.to_pem), write("#{name}.key.pem", pem))
  end

  # @return [Pair] the authority itself
  def own
    Pair.new(@authority, write("authority.key.pem", @key.private_to_pem))
  end

  # @param pairs [Array<Pair>] whose certificates are revoked
  # @return [String] path of a file with the authority and its list
  def revocations(*pairs)
    list = OpenSSL::X509::CRL.new
    list.version = 1
    list.issuer = @own.subject
    list.last_update = Time.now - 60
    list.next_update = Time.now + 86_400
    pairs.each do |pair|
      revoked = OpenSSL::X509::Revoked.new
      revoked.serial = OpenSSL::X509::Certificate.new(File.read(pair.certificate)).serial
      revoked.time = Time.now - 60
      list.add_revoked(revoked)
    end
    write("revocations.pem", @own.to_pem + list.sign(@key, "SHA256").to_pem)
  end

  # @return [OpenSSL::X509::Certificate] signed by this authority
  def certificate(name, key, days: -1..30)
    made = OpenSSL::X509::Certificate.new
    made.version = 2
    made.serial = @serial += 1
    made.subject = OpenSSL::X509::Name.new(name ? [["CN", name]] : [])
    made.issuer = @own ? @own.subject : made.subject
    made.not_before = Time.now + (days.begin * 86_400)
    made.not_after = Time.now + (days.end * 86_400)
    made.public_key = key
    yield made, OpenSSL::X509::ExtensionFactory.new(@own || made, made)
    made.sign(@key, "SHA256")
  end

  private

  def write(name, text)
    File.join(@folder, name).tap { |path| File.write(path, text) }
  end
end
