// The card of a span: its words and posterior, what may be required of it, and the glossary of its label.
function makeCard({ result, system, span, symbol, marks, posterior, onConstrain, onSymbol, onClose }) {
  const isCounted = span[1] - span[0] > 1;
  const card = make("section", { class: "card details", "aria-label": "The selected span" },
    make("div", { class: "head" },
      make("h3", { tabindex: -1 }, bdi(inBrief(wordsOf(result, span)))),
      make("button", { type: "button", class: "plain", "aria-label": "Close", onclick: onClose }, "✕")));
  const facts = [];
  if (isCounted) facts.push(`posterior of the span ${posterior.toFixed(3)}`);
  facts.push(...marks.inWords(span));
  if (facts.length) card.append(make("p", { class: "soft" }, facts.join(" · ")));
  if (isCounted && onConstrain) card.append(constraintChoice(span, marks, onConstrain));
  if (!symbol) {
    card.append(make("p", { class: "soft" }, "These words are not a constituent of this tree, so they have no label."));
    return card;
  }
  const place = make("div", { class: "glossary", "aria-busy": "true" }, make("p", { class: "soft" }, `Looking up ${symbol} …`));
  card.append(place);
  cardOf(system.model, symbol).then(
    (found) => place.replaceChildren(...glossary(found, onSymbol)),
    (error) => place.replaceChildren(make("h4", {}, symbol), make("p", { class: "soft" }, error.message)),
  ).finally(() => place.removeAttribute("aria-busy"));
  return card;
}

function constraintChoice(span, marks, onConstrain) {
  const key = keyOf(span);
  const now = marks.must.includes(key) ? "must" : marks.mustNot.includes(key) ? "must_not" : "free";
  const choices = { free: "no constraint", must: "must be a constituent", must_not: "must not be a constituent" };
  return make("fieldset", { class: "choices" },
    make("legend", {}, "This span"),
    ...Object.entries(choices).map(([value, text]) =>
      make("label", {},
        make("input", { type: "radio", name: "constraint", value, checked: value === now, onchange: () => onConstrain(span, value) }),
        ` ${text}`)));
}

function glossary(card, onSymbol) {
  const parts = [make("h4", {}, card.name, " ", make("span", { class: "soft" }, card.use))];
  if (card.share !== null) {
    parts.push(draw("svg", { class: "bar", viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" },
      draw("rect", { class: "bar-ground", width: 100, height: 1 }),
      draw("rect", { class: "bar-share", width: (100 * card.share).toFixed(2), height: 1 })));
  }
  const list = make("dl");
  for (const fact of card.facts) {
    list.append(make("dt", {}, fact.name), make("dd", { class: fact.name === "phrases" || fact.name === "two words" ? "phrases" : null }, ...fact.pieces.map((piece) =>
      make("span", { class: "piece" }, bdi(piece.text), piece.number ? make("span", { class: "number" }, ` ${piece.number}`) : null))));
  }
  if (card.rules.length) {
    list.append(make("dt", {}, "rules"), make("dd", {}, make("ol", { class: "rules" }, ...card.rules.map((rule) =>
      make("li", {}, make("span", { class: "number" }, rule.probability.toFixed(3)), " ",
        ...rule.children.flatMap((child, place) => [place ? " + " : null, childOf(child, onSymbol)]))))));
  }
  return [...parts, list];
}

function childOf(child, onSymbol) {
  return make("span", {},
    make("button", { type: "button", class: "symbol", onclick: () => onSymbol(child.symbol) }, child.symbol),
    child.meaning ? make("span", { class: "soft" }, " (", bdi(child.meaning), ")") : null);
}
