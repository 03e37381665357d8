// The posteriors of all spans: a row is the first word, a column the last. Cells too pale to be seen are not drawn, but
// the pointer and the arrow keys reach every one of them.
const NEGLIGIBLE = 0.005;

function drawChart(result, { label, marks, onLink, onSelect, onConstrain }) {
  const { chart: grid, posteriors } = result;
  const length = result.tokens.length;
  const table = new Map(posteriors.spans.map(([start, end, p]) => [keyOf([start, end]), p]));
  const chosen = new Set(result.constituents.filter(([i, j]) => j - i > 1).map(keyOf));
  const mirrored = (x, width) => (grid.mirrored ? grid.width - x - width : x);

  const box = ([start, end], first = end) => {
    const width = (end - first + 1) * grid.cell - grid.apart;
    return {
      x: mirrored(grid.left + first * grid.cell + grid.apart / 2, width).toFixed(1),
      y: (grid.top + start * grid.cell + grid.apart / 2).toFixed(1),
      width: width.toFixed(1),
      height: (grid.cell - grid.apart).toFixed(1),
    };
  };
  const scale = length <= 14 ? 1.25 : length <= 24 ? 1.1 : 1; // a short sentence has room
  const svg = draw("svg", {
    class: "ramify chart",
    width: Math.round(grid.width * scale),
    height: Math.round(grid.height * scale),
    viewBox: `0 0 ${grid.width} ${grid.height}`,
    role: "application",
    tabindex: 0,
    "aria-roledescription": "triangle of spans",
    "aria-label": `${label}. Arrow keys move the span's ends, Enter shows it, plus requires it, minus forbids it, 0 frees it.`,
  });
  for (let start = 0; start < length - 1; start++) {
    svg.append(draw("rect", { class: "empty", ...box([start, length], start + 2) }));
  }
  const seen = new Set(posteriors.spans.filter(([, , p]) => p >= NEGLIGIBLE).map(keyOf));
  for (const key of new Set([...seen, ...chosen])) {
    const span = key.split("-").map(Number);
    const opacity = Math.min(Math.max(table.get(key) ?? 0, 0), 1).toFixed(3);
    svg.append(draw("rect", { class: "shade", ...box(span), "fill-opacity": opacity }));
    if (chosen.has(key)) svg.append(draw("rect", { class: "chosen", ...box(span) }));
  }
  for (const [span, sign] of marks.constraints()) {
    if (span[1] - span[0] < 2) continue;
    const { x, y } = box(span);
    const middle = { x: Number(x) + grid.cell / 2 - 0.5, y: Number(y) + grid.cell / 2 - 0.5 };
    svg.append(draw("rect", { class: sign === "+" ? "cell-must" : "cell-must-not", ...box(span) }));
    svg.append(draw("text", { class: "sign", ...middle, "font-size": 15, "text-anchor": "middle" }, sign === "+" ? "+" : "−"));
  }
  const words = grid.words.map((word) => draw("text", {
    class: "word", x: word.x.toFixed(1), y: word.y.toFixed(1), "font-size": grid.font_size,
    "text-anchor": word["text-anchor"], direction: word.direction,
  }, word.text));
  const chosenBox = draw("rect", { class: "cell-selected", width: 0, height: 0 });
  const cursor = draw("rect", { class: "cursor", width: 0, height: 0 });
  svg.append(...words, chosenBox, cursor);

  const put = (rect, span) => {
    const place = span && span[1] - span[0] > 1 ? box(span) : { width: 0, height: 0 };
    for (const [name, value] of Object.entries(place)) rect.setAttribute(name, value);
  };
  const inWords = (span) => {
    const p = table.get(keyOf(span)) ?? 0;
    const parts = [`${inBrief(wordsOf(result, span))}: posterior ${p.toFixed(3)}`];
    if (chosen.has(keyOf(span))) parts.push("a constituent of the tree");
    return [...parts, ...marks.inWords(span)].join(", ");
  };
  const at = (event) => {
    const frame = svg.getBoundingClientRect();
    const across = ((event.clientX - frame.left) / frame.width) * grid.width;
    const down = ((event.clientY - frame.top) / frame.height) * grid.height;
    const end = Math.floor(((grid.mirrored ? grid.width - across : across) - grid.left) / grid.cell);
    const start = Math.floor((down - grid.top) / grid.cell);
    return start >= 0 && end <= length && end - start > 1 ? [start, end] : null;
  };
  let current = [0, Math.min(2, length)];
  svg.addEventListener("pointermove", (event) => onLink(at(event)));
  svg.addEventListener("pointerleave", () => onLink(null));
  svg.addEventListener("click", (event) => {
    const span = at(event);
    if (span) {
      current = span;
      onSelect(span);
    }
  });
  svg.addEventListener("focus", () => { if (svg.matches(":focus-visible")) move(current); });
  svg.addEventListener("blur", () => onLink(null));
  const move = (span) => {
    current = span;
    onLink(span);
    announce(inWords(span));
  };
  svg.addEventListener("keydown", (event) => {
    const [start, end] = current;
    const right = grid.mirrored ? -1 : 1;
    const moves = {
      ArrowRight: [start, end + right], ArrowLeft: [start, end - right], ArrowUp: [start - 1, end],
      ArrowDown: [start + 1, end], Home: [0, 2], End: [0, length],
    };
    const constrain = { "+": "must", "-": "must_not", 0: "free" }[event.key];
    if (event.key in moves) {
      const [i, j] = moves[event.key];
      if (i >= 0 && j <= length && j - i > 1) move([i, j]);
    } else if (event.key === "Enter" || event.key === " ") onSelect(current);
    else if (constrain) onConstrain?.(current, constrain);
    else return;
    event.preventDefault();
  });
  return {
    element: svg,
    posterior: (span) => table.get(keyOf(span)) ?? 0,
    link(span, selected) {
      put(cursor, span);
      put(chosenBox, selected);
      words.forEach((word, place) => word.classList.toggle("linked", Boolean(span && span[0] <= place && place < span[1])));
    },
  };
}
