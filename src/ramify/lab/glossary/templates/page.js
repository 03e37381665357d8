"use strict";
(() => {
  const form = document.getElementById("search");
  const box = form.querySelector("input");
  const count = form.querySelector("output");
  const sections = [...document.querySelectorAll("section")];
  const entries = [...document.querySelectorAll("[data-search]")].map((entry) => [entry, ` ${entry.dataset.search}`]);

  // An entry stays if every word that was typed is the beginning of one of its names, words or labels.
  const filter = () => {
    const terms = box.value.normalize("NFC").toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const [entry, text] of entries) {
      entry.hidden = !terms.every((term) => text.includes(` ${term}`));
      found += entry.hidden ? 0 : 1;
    }
    for (const section of sections) {
      section.hidden = !section.querySelector("[data-search]:not([hidden])");
    }
    count.textContent = terms.length ? `${found} of ${entries.length} found` : "";
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  box.addEventListener("input", filter);
  // A link may lead to a symbol that the search has hidden.
  addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.closest("[hidden]")) {
      box.value = "";
      filter();
      target.scrollIntoView();
    }
  });
  form.hidden = false;
  filter();
})();
