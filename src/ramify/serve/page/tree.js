// A tree where the server placed it: the numbers are those of `ramify parse --format svg`.
const SMALLEST = 0.7;

function drawTree(result, { marks, onLink, onSelect }) {
  const { tree } = result;
  const svg = draw("svg", {
    class: "ramify tree",
    width: tree.width,
    height: tree.height,
    viewBox: `0 0 ${tree.width} ${tree.height}`,
    role: "img",
    "aria-label": `Tree of: ${result.tokens.join(" ")}`,
  });
  for (const edge of tree.edges) {
    const points = edge.points.map((point) => point.map((each) => each.toFixed(1)).join(",")).join(" ");
    svg.append(draw("polyline", { class: edge.head ? "edge head" : "edge", points }));
  }
  const groups = tree.nodes.map((node, number) => {
    const group = draw("g", { class: `node ${node.kind}-node` }, title(result, node, marks), pill(node), text(node));
    for (const kind of marks.kinds(node.span, node.kind)) group.classList.add(kind);
    const glyph = marks.glyph(node.span, node.kind);
    if (glyph) group.append(badge(node, glyph));
    group.addEventListener("pointerenter", () => onLink(node.span));
    group.addEventListener("pointerleave", () => onLink(null));
    group.addEventListener("click", () => onSelect(node.span, number));
    svg.append(group);
    return group;
  });
  return {
    element: svg,
    // A tree that is a little too wide is drawn smaller; one that is much too wide scrolls.
    fit(room) {
      const scale = Math.min(1, Math.max(room / tree.width, SMALLEST));
      svg.setAttribute("width", Math.floor(tree.width * scale));
      svg.setAttribute("height", Math.floor(tree.height * scale));
    },
    link(span, chosen) {
      tree.nodes.forEach((node, number) => {
        const inside = span && node.kind === "word" && span[0] <= node.span[0] && node.span[1] <= span[1];
        const itself = node.kind === "constituent" && sameSpan(node.span, span);
        groups[number].classList.toggle("linked", Boolean(inside || itself));
        groups[number].classList.toggle("selected", node.kind === "constituent" && sameSpan(node.span, chosen));
      });
    },
  };
}

function badge(node, glyph) {
  const [x, y] = [node.box[0] + node.box[2], node.box[1]];
  const width = 6 + 8 * glyph.length;
  return draw("g", { class: "badge" },
    draw("rect", { x: x - width / 2, y: y - 7, width, height: 14, rx: 7 }),
    draw("text", { class: "glyph", x, y: y + 0.5, "font-size": 11, "text-anchor": "middle" }, glyph));
}

function pill(node) {
  const [x, y, width, height] = node.box.map((each) => each.toFixed(1));
  const shape = { x, y, width, height, rx: 6 };
  if (node.posterior === null) return draw("rect", { class: "ground", ...shape });
  return draw("rect", { class: "shade known", ...shape, "fill-opacity": node.shade });
}

function text(node) {
  return draw("text", {
    class: node.kind,
    x: node.x.toFixed(1),
    y: node.y.toFixed(1),
    "font-size": node.font_size,
    "text-anchor": node["text-anchor"],
    direction: node.direction,
  }, node.text);
}

function title(result, node, marks) {
  const lines = [node.kind === "word" ? node.text : `${node.text}: ${inBrief(wordsOf(result, node.span))}`];
  if (node.posterior !== null) lines.push(`posterior of the span ${node.posterior.toFixed(3)}`);
  if (node.symbol_posterior !== null) {
    const which = node.kind === "tag" ? "of the tag" : "with this label";
    lines.push(`posterior ${which} ${node.symbol_posterior.toFixed(3)}`);
  }
  lines.push(...(node.kind === "constituent" ? marks.inWords(node.span) : []));
  return draw("title", {}, lines.join("\n"));
}
