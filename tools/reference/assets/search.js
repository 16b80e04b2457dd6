// Searches the index of search_index.js: [title, address, about, words]. All words of the query have to be there, the
// last one may be a beginning. SPDX-License-Identifier: MIT
"use strict";
{
  const root = document.body.dataset.root;
  const query = document.getElementById("query");
  const found = document.getElementById("found");
  const MOST = 30;

  const entries = (window.rondoIndex || []).map(([title, url, about, words]) =>
    ({ title, url, about, name: title.toLowerCase(), words: " " + words + " " }));

  // 0: it is not there.
  const worth = (entry, word) => {
    if (entry.name === word) return 100;
    if (entry.name.endsWith("." + word) || entry.name.endsWith("#" + word) || entry.name.endsWith("::" + word)) return 80;
    if (entry.name.startsWith(word)) return 40;
    if (entry.name.includes(word)) return 20;
    if (entry.words.includes(" " + word + " ")) return 3;
    return entry.words.includes(" " + word) ? 1 : 0;
  };

  const search = (text) => {
    const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
    if (words.length === 0) return [];
    const hits = [];
    for (const entry of entries) {
      const worths = words.map((word) => worth(entry, word));
      const whole = worth(entry, words.join(" "));
      if (whole >= 20 || worths.every((one) => one > 0)) {
        hits.push([whole * 10 + worths.reduce((sum, one) => sum + one), entry]);
      }
    }
    hits.sort((one, other) => other[0] - one[0] || one[1].title.length - other[1].title.length);
    return hits.slice(0, MOST).map((hit) => hit[1]);
  };

  const show = () => {
    const hits = search(query.value);
    found.hidden = query.value.trim() === "";
    found.replaceChildren(...hits.map((entry) => {
      const line = document.createElement("li");
      const link = document.createElement("a");
      const about = document.createElement("small");
      link.href = root + entry.url;
      link.textContent = entry.title;
      about.textContent = " " + entry.about;
      line.append(link, about);
      return line;
    }));
    if (hits.length === 0) found.textContent = "nothing found";
  };

  query.addEventListener("input", show);
  query.addEventListener("keydown", (event) => {
    if (event.key === "Enter") found.querySelector("a")?.click();
    if (event.key === "Escape") { query.value = ""; show(); }
  });
  found.addEventListener("click", () => { found.hidden = true; });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== query) { event.preventDefault(); query.focus(); }
  });
}
