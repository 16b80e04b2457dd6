# encoding: ascii-8bit
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# Which file a path names: decoding, names, folders, hidden files, links, and entries that are not regular files.

FilesRules.define do
  row "plain", "a file"
  serves "plain.txt", "/plain.txt", "/%70lain.txt", "/plain%2Etxt", "/plain%2etxt", "/%70%6c%61%69%6e%2e%74%78%74",
         "/plain.txt?", "/plain.txt?x=1", "/plain.txt?/../x", "/plain.txt?%00%zz", "/plain.txt??#{"q" * 2000}"
  serves "dir/file.txt", "/dir/file.txt", "/d%69r/file.txt"
  serves "dir/deep/deeper/leaf.txt", "/dir/deep/deeper/leaf.txt"
  on(:alone) { serves "plain.txt", "/plain.txt", "/plain.txt?x=1" }
  on(:pages, :failing) { serves "plain.txt", "/plain.txt" }

  row "absent", "no such file"
  hides "/nothing", "/plain", "/plain.tx", "/plain.txtx", "/lain.txt", "/PLAIN.TXT", "/Plain.txt", "/plain.txt.",
        "/dir/nothing", "/nothing/file.txt", "/bare/nothing/", "/index.htm", "/x?y=1", "/a:b", "/~root",
        "/#{"n" * 256}", "/#{"n" * 4000}", "/#{"n/" * 2100}n", "/#{"d/" * 500}"
  serves "#{"n" * 251}.txt", "/#{"n" * 251}.txt"

  row "decode", "the path is decoded once, and what cannot be is no name"
  hides "/%", "/%7", "/plain.txt%", "/plain.txt%2", "/%zzplain.txt", "/%7zlain.txt", "/%%70lain.txt", "/% 70".delete(" "),
        "/%2570lain.txt", "/plain%252etxt", "/%25%37%30lain.txt", "/%u0070lain.txt", "/plain.txt%0", "/%-1plain.txt",
        "/%+7plain.txt", "/%0x70lain.txt"

  row "names", "names with bytes of all kinds"
  serves "with space.txt", "/with%20space.txt"
  serves "100%.txt", "/100%25.txt"
  serves "100%25.txt", "/100%2525.txt"
  serves "what?.txt", "/what%3F.txt", "/what%3f.txt?x"
  serves "tag#1.txt", "/tag%231.txt"
  serves "plus+plus.txt", "/plus+plus.txt", "/plus%2Bplus.txt"
  serves "semi;colon.txt", "/semi;colon.txt", "/semi%3bcolon.txt"
  serves "and&=@:,$'()*!~.txt", "/and&=@:,$'()*!~.txt", "/and%26%3d%40%3a%2c%24%27%28%29%2a%21%7e.txt"
  serves "caf\xC3\xA9.txt", "/caf%C3%A9.txt", "/caf%c3%a9.txt"
  serves "latin-\xE9.txt", "/latin-%E9.txt"
  serves "\xFF\xFE", "/%FF%FE", "/%fF%Fe"
  serves "quote\"<>.txt", "/quote%22%3C%3E.txt"
  serves "-dash.txt", "/-dash.txt"
  serves "two..dots.txt", "/two..dots.txt", "/two%2e%2edots.txt"
  serves "ends..", "/ends.."
  hides "/with+space.txt", "/what", "/what?.txt", "/100%25252525.txt", "/cafe%CC%81.txt", "/caf%E9.txt", "/semi"

  row "raw", "bytes that must be encoded never reach a file"
  on(:app, :alone) do
    ["/with space.txt", "/tag#1.txt", "/caf\xC3\xA9.txt", "/plain.txt#x", "/plain.txt\0", "/a\\b.txt", "plain.txt", "../outside.txt",
     "/plain.txt\x01"].each do |target|
      gives get(target), refused(400), ends: :closed
    end
  end

  row "control", "NUL and control bytes, although there are such names"
  hides "/plain.txt%00", "/%00plain.txt", "/plain%00.txt", "/%00", "/plain.txt%00.html", "/new%0Aline.txt", "/new%0aline.txt",
        "/a%09b.txt", "/plain.txt%0d%0a", "/plain.txt%7F", "/plain.txt%1f", "/%0d%0ax:%20y/"

  row "slash", "an encoded slash or a backslash is refused, although there are such names"
  hides "/a%2Fb.txt", "/a%2fb.txt", "/dir%2Ffile.txt", "/dir%2F", "/%2Fplain.txt", "/%2f%2fplain.txt", "/%2F", "/plain.txt%2F",
        "/a%5Cb.txt", "/a%5cb.txt", "/dir%5Cfile.txt", "/%5Cplain.txt", "/dir/%5c..%5cplain.txt", "/%5c%5chost%5cshare",
        "/..%2foutside.txt", "/..%5coutside.txt", "/dir%252Ffile.txt", "/%c0%afplain.txt", "/dir%c0%affile.txt",
        "/dir%e0%80%affile.txt", "/dir%f0%80%80%affile.txt", "/dir%ef%bc%8ffile.txt"
  serves "a/b.txt", "/a/b.txt"

  row "dots", "segments of dots go nowhere"
  hides "/..", "/../", "/.", "/./", "/../outside.txt", "/../public/plain.txt", "/../publicX/secret.txt", "/dir/../plain.txt",
        "/dir/..", "/dir/../", "/dir/.", "/dir/./file.txt", "/./plain.txt", "/dir/../../outside.txt", "/plain.txt/..",
        "/plain.txt/../plain.txt", "/%2e%2e/outside.txt", "/%2E%2E/outside.txt", "/.%2e/outside.txt", "/%2e./outside.txt",
        "/%2e%2e", "/%2e/plain.txt", "/dir/%2e%2e/plain.txt", "/%2e%2e%2foutside.txt", "/%252e%252e/outside.txt",
        "/%25%32%65%25%32%65/outside.txt", "/%c0%ae%c0%ae/outside.txt", "/%e0%80%ae%e0%80%ae/outside.txt", "/..;/outside.txt",
        "/%2e%2e;/outside.txt", "/.../plain.txt", "/..%00/outside.txt", "/..%20/outside.txt", "/#{"../" * 30}etc/passwd",
        "/#{"%2e%2e/" * 30}etc/passwd", "/dir/#{"../" * 3}etc/passwd", "/etc/passwd", "/proc/self/environ", "/outside.txt",
        "/publicX/secret.txt", "/X/secret.txt"

  row "slashes", "empty segments"
  hides "//plain.txt", "///plain.txt", "/dir//file.txt", "//dir/file.txt", "//dir", "//dir/", "/dir//", "//", "///", "//a/plain.txt",
        "//evil.example/", "//evil.example/..", "//dir/index.html", "/dir//index.html", "/plain.txt/", "/plain.txt//", "/plain.txt/x",
        "/index.html/"

  row "folder", "a folder is its index, and is named with a slash"
  serves "index.html", "/", "/index.html", "/?x=1"
  serves "dir/index.html", "/dir/", "/dir/?x=1", "/dir/index.html", "/d%69r/"
  serves "dir/deep/index.html", "/dir/deep/", "/dir/deep/index.html"
  serves "with space/index.html", "/with%20space/"
  serves "caf\xC3\xA9/index.html", "/caf%C3%A9/"
  on(:alone) { serves "dir/index.html", "/dir/" }
  on(:app, :alone) do
    { "/dir" => "/dir/", "/dir?x=1" => "/dir/?x=1", "/dir?" => %r{\A/dir/\??\z}, "/dir?a=b&c=/../d?e" => "/dir/?a=b&c=/../d?e",
      "/dir/deep" => "/dir/deep/", "/with%20space" => "/with%20space/", "/caf%C3%A9" => "/caf%C3%A9/", "/d%69r" => %r{\A/(d%69r|dir)/\z},
      "/dir?%0d%0ax:%20y" => "/dir/?%0d%0ax:%20y", "/dir?//evil.example" => "/dir/?//evil.example",
      "http://a/dir" => "/dir/", "http://evil.example/dir?x" => "/dir/?x",
      "http://a/dir/deep?http://b/" => "/dir/deep/?http://b/", "/link-dir" => "/link-dir/" }.each do |target, location|
      gives get(target), moved(location)
      gives head(target), moved(location).to_head
    end
  end

  row "moved", "conditions and ranges say nothing about a folder without its slash"
  gives get("/dir", "Range: bytes=0-1"), moved("/dir/")
  gives get("/dir", "If-None-Match: *"), moved("/dir/")
  gives get("/dir", "If-Match: \"x\""), moved("/dir/")
  gives get("/dir", "If-Modified-Since: Fri, 31 Dec 2100 00:00:00 GMT"), moved("/dir/")

  row "no_index", "a folder without an index"
  hides "/bare", "/bare/", "/bare?x", "/empty", "/empty/", "/odd", "/odd/", "/odd/index.html", "/odd/index.html/", "/out-index",
        "/out-index/", "/out-index/index.html", "/dir/deep/deeper", "/dir/deep/deeper/", "/a", "/a/", "/.well-known", "/.well-known/"
  on(:pages, :failing) { gives get("/"), nothing("/") }
  on(:pages, :failing) { gives get("/dir"), nothing("/dir") }

  row "hidden", "names that begin with a dot"
  hides "/.env", "/.git/config", "/.git", "/.git/", "/dir/.hidden.txt", "/dir/.well-known/file.txt", "/...", "/..two.txt", "/.well-known/.secret",
        "/.well-known.txt", "/.well-knownX/file.txt", "/%2eenv", "/%2Egit/config", "/dir/%2ehidden.txt", "/.Well-Known/acme.txt",
        "/.nothing", "/.well-known/../.env", "/.well-known/nothing", "/.well-known/%2esecret"
  serves ".well-known/acme.txt", "/.well-known/acme.txt", "/%2ewell-known/acme.txt"
  serves ".well-known/deep/token", "/.well-known/deep/token"

  row "links", "a link that stays below the folder"
  serves "plain.txt", "/link.txt", "/chain.txt", "/dir/up.txt", "/hard.txt", "/link-dir/up.txt"
  serves "dir/file.txt", "/link-dir/file.txt", "/dir/deep/round.txt"
  serves "dir/index.html", "/link-dir/"

  row "leaves", "a link that leaves, or leads nowhere"
  hides "/out.txt", "/out-dir", "/out-dir/", "/out-dir/outside.txt", "/out-dir/public/plain.txt", "/beside", "/beside/secret.txt",
        "/absolute.txt", "/null", "/zero", "/loop.txt", "/loop-a", "/loop-b", "/dangling.txt", "/detour.txt", "/dir/far.txt", "/link-dir/far.txt",
        "/root", "/root/", "/root/etc/passwd", "/self", "/self/environ", "/self/fd/0", "/self/root/etc/passwd"

  row "special", "what is neither file nor folder"
  hides "/fifo", "/socket", "/fifo/", "/socket/x", "/pipe-gz.txt.gz", "/folder-gz.txt.gz", "/folder-gz.txt.gz/"
end
