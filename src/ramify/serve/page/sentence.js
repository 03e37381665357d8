// One sentence with all that is known about it: trees, posteriors, the card of what was chosen.
class SentenceView {
  constructor(state, place, { earlier = [], chosen = null, onConstrain = null }) {
    Object.assign(this, { state, place, onConstrain, chosen });
    this.given = state.sentences[place];
    this.results = state.results.map((results) => results[place]);
    this.marks = this.results.map((result, number) => new Marks(result, {
      given: this.given,
      other: this.results.length > 1 ? this.results[1 - number] : null,
      earlier: earlier[number],
    }));
    this.linked = []; // what follows the pointer, by system
    this.charts = [];
    this.trees = [];
    this.card = make("div", { class: "card-place" });
  }

  render() {
    const [first] = this.results;
    const parts = [this.heading(first), this.remarks(first), this.constraintChips(first)];
    if (!first.tokens.length) return [...parts, make("p", { class: "soft" }, "This sentence has no tokens.")];
    const trees = this.results.map((_, number) => this.treeCard(number));
    const charts = this.results.map((_, number) => this.chartCard(number)).filter(Boolean);
    const hint = make("p", { class: "soft hint" }, this.onConstrain
      ? "Select a node of the tree or a cell of a triangle to see what its label stands for, and to require or forbid the span."
      : "Select a node of the tree or a cell of a triangle to see what its label stands for.");
    this.card.replaceChildren(hint);
    parts.push(make("div", { class: trees.length > 1 ? "pair" : "single" }, ...trees));
    parts.push(make("div", { class: trees.length > 1 ? "below two" : "below" }, make("div", { class: "charts" }, ...charts), this.card));
    if (this.chosen) this.select(this.chosen.number, this.chosen.span, this.chosen.node, false);
    return parts;
  }

  fit() {
    for (const tree of this.trees) tree.fit(tree.element.parentElement.clientWidth);
  }

  name(number) {
    const { model, decoder } = this.state.systems[number];
    return `${model}, ${decoder}`;
  }

  heading(result) {
    this.tokens = [];
    const heading = make("h2", { id: "sentence", dir: "auto", tabindex: -1 });
    let end = 0;
    for (const [from, to] of result.offsets) {
      const token = make("span", { class: "token" }, result.text.slice(from, to));
      heading.append(result.text.slice(end, from), token);
      this.tokens.push(token);
      end = to;
    }
    return heading;
  }

  remarks(result) {
    const found = [];
    const number = this.state.results[0].length > 1 ? `${this.place + 1} of ${this.state.results[0].length}` : "";
    if (number) found.push(number);
    this.results.forEach((each, at) => {
      const prefix = this.results.length > 1 ? `${this.name(at)}: ` : "";
      if (each.failure) found.push(`${prefix}no parse (${each.failure}), so the tree is flat`);
      if (each.log_probability !== null) found.push(`${prefix}log p = ${each.log_probability.toFixed(2)} nats`);
      if (each.constraint_probability !== null) found.push(`${prefix}p(constraints) = ${Number(each.constraint_probability.toPrecision(3))}`);
    });
    const unknown = result.tokens.filter((_, place) => result.unknown[place]);
    if (unknown.length) found.push(`unknown: ${unknown.join(", ")}`);
    return make("p", { class: "soft remarks" }, ...found.map((each) => make("span", {}, each)));
  }

  constraintChips(result) {
    const chips = this.marks[0].constraints().map(([span, sign]) => {
      const words = inBrief(wordsOf(result, span));
      const what = sign === "+" ? "required" : "forbidden";
      return make("li", { class: `chip ${what}` }, `${what}: `, bdi(words), this.onConstrain && make("button", {
        type: "button", class: "plain", "aria-label": `Remove the constraint on ${words}`, onclick: () => this.onConstrain(span, "free"),
      }, "✕"));
    });
    return chips.length ? make("ul", { class: "chips", "aria-label": "Constraints" }, ...chips) : null;
  }

  treeCard(number) {
    const result = this.results[number];
    const does = this.does(number);
    const tree = drawTree(result, does);
    const outline = makeOutline(result, { ...does, label: `Tree by ${this.name(number)}` });
    this.linked.push([number, tree], [number, outline]);
    this.trees.push(tree);
    const copies = { Brackets: "brackets", "LaTeX (forest)": "forest", "LaTeX (qtree)": "qtree", SVG: "svg" };
    const buttons = Object.entries(copies).map(([text, format]) => make("button", {
      type: "button", class: "small", onclick: () => copy(result.formats[format], text),
    }, text));
    return make("article", { class: "card", "aria-label": `Tree, ${this.name(number)}` },
      make("div", { class: "head" }, make("h3", {}, this.name(number)),
        make("div", { class: "tools", role: "group", "aria-label": "Copy the tree as" }, make("span", { class: "soft" }, "Copy"), ...buttons)),
      ...this.verdicts(number),
      make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `Drawn tree, ${this.name(number)}`, dir: result.tree.right_to_left ? "rtl" : "ltr" }, tree.element),
      make("details", { class: "as-list" }, make("summary", {}, "The tree as a list"), outline.element));
  }

  verdicts(number) {
    const [result, marks] = [this.results[number], this.marks[number]];
    const lines = [];
    if (marks.others) {
      const total = bracketsOf(result).size;
      lines.push(make("p", { class: "verdict" }, marks.differing
        ? make("span", {}, make("span", { class: "key-differs" }), `${total - marks.differing} of ${counted(total, "bracket")} are also in the other tree; the others have a dashed frame.`)
        : `All ${counted(total, "bracket")} are also in the other tree.`));
    }
    if (result.gold?.score) {
      const { f1, correct, predicted, gold } = result.gold.score;
      lines.push(make("p", { class: "verdict" }, make("b", {}, `F1 ${f1.toFixed(1)}`),
        ` · ${correct} of ${counted(predicted, "bracket")} correct (✓) · ${counted(gold, "gold bracket")}`));
      if (result.gold.missed.length) {
        lines.push(make("p", { class: "soft" }, "Missed: ", ...result.gold.missed.flatMap(([start, end, label], place) => [
          place ? ", " : "", make("b", {}, label || "–"), " ", bdi(inBrief(wordsOf(result, [start, end])))])));
      }
    }
    return lines;
  }

  chartCard(number) {
    const result = this.results[number];
    if (result.failure || result.tokens.length < 2 || !result.posteriors) return null;
    const chart = drawChart(result, { ...this.does(number), label: `Posteriors of all spans, ${this.name(number)}` });
    this.charts[number] = chart;
    this.linked.push([number, chart]);
    return make("article", { class: "card", "aria-label": `Span posteriors, ${this.name(number)}` },
      make("h3", {}, this.results.length > 1 ? `Span posteriors, ${this.name(number)}` : "Span posteriors"),
      make("p", { class: "soft" }, "A row is the first word of a span, a column its last; constituents of the tree have a frame."),
      make("div", { class: "wide", tabindex: -1, dir: result.tree.right_to_left ? "rtl" : "ltr" }, chart.element));
  }

  does(number) {
    return {
      marks: this.marks[number],
      onLink: (span) => this.link(number, span),
      onSelect: (span, node) => this.select(number, span, node),
      onConstrain: this.onConstrain,
    };
  }

  // Systems that found the same tokens are linked with each other.
  link(number, span) {
    const tokens = this.results[number].tokens.join(" ");
    for (const [other, part] of this.linked) {
      const same = this.results[other].tokens.join(" ") === tokens;
      part.link(same ? span : null, same ? this.chosen?.span : null);
    }
    this.tokens.forEach((token, place) => token.classList.toggle("linked", Boolean(span && span[0] <= place && place < span[1])));
  }

  select(number, span, node, moves = true) {
    const result = this.results[number];
    const there = result.tree.nodes.findIndex((each) => each.kind === "constituent" && sameSpan(each.span, span));
    const at = node ?? there;
    const [chosen] = [result.tree.nodes[at]];
    const isWord = chosen?.kind === "word";
    const tagged = isWord ? result.tree.nodes[chosen.parent] : chosen;
    const symbol = isWord && tagged?.kind !== "tag" ? "" : tagged?.text ?? "";
    this.chosen = { number, span, node };
    const close = () => {
      this.chosen = null;
      this.card.replaceChildren();
      this.link(number, null);
    };
    const show = (name) => {
      const card = makeCard({
        result, span, symbol: name, system: this.state.systems[number], marks: this.marks[number],
        posterior: this.charts[number]?.posterior(span) ?? 0, onConstrain: this.onConstrain, onSymbol: show, onClose: close,
      });
      this.card.replaceChildren(card);
      if (moves) card.querySelector("h3").focus({ preventScroll: true });
    };
    show(symbol);
    this.link(number, null);
    if (moves) this.card.scrollIntoView({ block: "nearest" });
  }
}
