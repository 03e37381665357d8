// What is said about spans besides their posteriors: constraints, gold brackets, another tree, an earlier one.
const inText = (result, [start, end]) => `${result.offsets[start][0]}-${result.offsets[end - 1][1]}`;
const bracketsOf = (result) => new Set(result.constituents.filter(([i, j]) => j - i > 1).map((each) => inText(result, each)));

class Marks {
  constructor(result, { given, other, earlier }) {
    this.result = result;
    this.must = (given.constraints?.must ?? []).map(keyOf);
    this.mustNot = (given.constraints?.must_not ?? []).map(keyOf);
    // Two models may find different tokens in a text, so brackets are compared by where they are in it.
    this.others = other ? bracketsOf(other) : null;
    this.earlier = earlier ? bracketsOf(earlier) : null;
    this.gold = new Map();
    result.constituents.forEach((each, place) => {
      const right = result.gold?.correct[place];
      if (right !== null && right !== undefined) this.gold.set(keyOf(each), right);
    });
  }

  differs(span) {
    return span[1] - span[0] > 1 && Boolean(this.others) && !this.others.has(inText(this.result, span));
  }

  get differing() {
    return this.result.constituents.filter((each) => this.differs(each)).length;
  }

  get changed() {
    const now = [...bracketsOf(this.result)];
    return this.earlier ? now.filter((each) => !this.earlier.has(each)).length : 0;
  }

  constraints() {
    const spans = (keys, sign) => keys.map((key) => [key.split("-").map(Number), sign]);
    return [...spans(this.must, "+"), ...spans(this.mustNot, "-")];
  }

  kinds(span, kind) {
    if (kind !== "constituent") return [];
    const found = [];
    if (this.differs(span)) found.push("differs");
    if (this.must.includes(keyOf(span))) found.push("must");
    if (this.gold.has(keyOf(span))) found.push(this.gold.get(keyOf(span)) ? "right" : "wrong");
    if (this.earlier && !this.earlier.has(inText(this.result, span))) found.push("fresh");
    return found;
  }

  glyph(span, kind) {
    if (kind !== "constituent") return "";
    const gold = this.gold.get(keyOf(span));
    return (gold === undefined ? "" : gold ? "✓" : "✗") + (this.must.includes(keyOf(span)) ? "+" : "");
  }

  inWords(span) {
    const found = [];
    if (this.must.includes(keyOf(span))) found.push("required");
    if (this.mustNot.includes(keyOf(span))) found.push("forbidden");
    if (this.gold.has(keyOf(span))) found.push(this.gold.get(keyOf(span)) ? "in the gold tree" : "not in the gold tree");
    const isThere = this.result.constituents.some((each) => sameSpan(each, span));
    if (isThere && this.differs(span)) found.push("not in the other tree");
    return found;
  }
}
