// The same tree as a list, for the keyboard and for screen readers (the pattern "tree view").
function makeOutline(result, { label, marks, onLink, onSelect }) {
  const { nodes } = result.tree;
  const children = nodes.map(() => []);
  const roots = [];
  nodes.forEach((node, number) => (node.parent < 0 ? roots : children[node.parent]).push(number));
  const items = new Map();

  const item = (number, level, place, siblings) => {
    const node = nodes[number];
    const [only] = children[number];
    const isLeaf = node.kind === "tag" || node.kind === "word";
    const word = node.kind === "tag" && only !== undefined ? nodes[only].text : node.text;
    const posterior = node.posterior === null ? "" : node.posterior.toFixed(2);
    const line = make("span", {
      class: "line", role: "treeitem", tabindex: -1, "aria-level": level, "aria-posinset": place + 1,
      "aria-setsize": siblings, "aria-expanded": isLeaf ? null : "true",
    },
      isLeaf ? bdi(word, { class: "leaf" }) : make("b", {}, node.text),
      isLeaf && node.kind === "tag" ? make("span", { class: "number" }, node.text) : null,
      isLeaf ? null : bdi(inBrief(wordsOf(result, node.span)), { class: "soft" }),
      posterior ? make("span", { class: "number" }, make("span", { class: "hidden" }, "posterior "), posterior) : null,
      ...(isLeaf ? [] : marks.inWords(node.span).map((each) => make("span", { class: each === "in the gold tree" || each === "required" ? "flag good" : "flag" }, each))));
    const element = make("li", { role: "none" }, line);
    if (!isLeaf) {
      const group = make("ul", { role: "group" });
      children[number].forEach((child, at) => group.append(item(child, level + 1, at, children[number].length)));
      element.append(group);
    }
    items.set(line, number);
    return element;
  };
  const list = make("ul", { role: "tree", "aria-label": label, class: "outline" },
    ...roots.map((root, at) => item(root, 1, at, roots.length)));
  list.querySelector("[role=treeitem]")?.setAttribute("tabindex", 0);

  const visible = () => [...items.keys()].sort((one, other) => items.get(one) - items.get(other))
    .filter((each) => each.checkVisibility());
  const enter = (element) => {
    if (!element) return;
    for (const each of items.keys()) each.setAttribute("tabindex", -1);
    element.setAttribute("tabindex", 0);
    element.focus();
  };
  list.addEventListener("focusin", (event) => onLink(nodes[items.get(event.target.closest("[role=treeitem]"))].span));
  list.addEventListener("focusout", () => onLink(null));
  list.addEventListener("pointerover", (event) => {
    const over = event.target.closest("[role=treeitem]");
    if (over) onLink(nodes[items.get(over)].span);
  });
  list.addEventListener("pointerleave", () => onLink(null));
  list.addEventListener("click", (event) => {
    const over = event.target.closest("[role=treeitem]");
    if (over) select(over);
  });
  const select = (element) => {
    const number = items.get(element);
    onSelect(nodes[number].span, number);
  };
  list.addEventListener("keydown", (event) => {
    const here = event.target.closest("[role=treeitem]");
    const order = visible();
    const at = order.indexOf(here);
    const open = here.getAttribute("aria-expanded");
    const inside = here.nextElementSibling;
    const parent = here.parentElement.parentElement.previousElementSibling;
    const does = {
      ArrowDown: () => enter(order[at + 1]),
      ArrowUp: () => enter(order[at - 1]),
      ArrowRight: () => (open === "false" ? here.setAttribute("aria-expanded", "true") : enter(inside?.querySelector("[role=treeitem]"))),
      ArrowLeft: () => (open === "true" ? here.setAttribute("aria-expanded", "false") : enter(parent)),
      Home: () => enter(order[0]),
      End: () => enter(order.at(-1)),
      Enter: () => select(here),
      " ": () => select(here),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  });
  return {
    element: list,
    link(span, chosen) {
      for (const [element, number] of items) {
        element.classList.toggle("linked", sameSpan(nodes[number].span, span));
        if (nodes[number].kind === "constituent") element.setAttribute("aria-selected", String(sameSpan(nodes[number].span, chosen)));
      }
    },
  };
}
