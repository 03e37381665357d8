// What a checker of accessibility would call serious: names, roles, references, headings, contrast.
() => {
  const found = [];
  const shown = (element) => element.checkVisibility({ visibilityProperty: true });
  const where = (element) => `${element.tagName.toLowerCase()}#${element.id}.${element.getAttribute("class") ?? ""}`;
  const nameOf = (element) => {
    const by = element.getAttribute("aria-labelledby");
    if (by) return by.split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ").trim();
    return (element.getAttribute("aria-label") ?? [...(element.labels ?? [])].map((each) => each.textContent).join(" ")
      ?? "").trim() || element.textContent.trim() || element.getAttribute("title") || "";
  };
  const all = [...document.querySelectorAll("*")];
  const visible = all.filter(shown);

  const ids = all.map((each) => each.id).filter(Boolean);
  for (const id of new Set(ids)) if (ids.filter((each) => each === id).length > 1) found.push(`id ${id} twice`);
  for (const element of all) {
    for (const name of ["for", "aria-labelledby", "aria-describedby", "aria-controls"]) {
      for (const id of (element.getAttribute(name) ?? "").split(" ").filter(Boolean)) {
        if (!document.getElementById(id)) found.push(`${where(element)}: ${name} leads to no ${id}`);
      }
    }
    if (element.tabIndex > 0) found.push(`${where(element)}: tabindex above 0`);
  }
  const interactive = "a[href], button, input, select, textarea, summary, [tabindex='0'], [role]";
  for (const element of visible.filter((each) => each.matches(interactive))) {
    if (["group", "none", "status", "alert"].includes(element.getAttribute("role"))) continue;
    if (!nameOf(element)) found.push(`${where(element)}: has no name`);
  }
  const roles = new Set(["img", "application", "tree", "treeitem", "group", "region", "status", "alert", "none"]);
  const parents = { treeitem: "[role=none]", none: "[role=tree], [role=group]" };
  for (const element of all.filter((each) => each.hasAttribute("role"))) {
    const role = element.getAttribute("role");
    if (!roles.has(role)) found.push(`${where(element)}: unexpected role ${role}`);
    if (parents[role] && !element.parentElement.matches(parents[role])) found.push(`${where(element)}: ${role} in the wrong place`);
  }
  for (const tree of visible.filter((each) => each.matches("[role=tree]"))) {
    if (tree.querySelectorAll("[role=treeitem][tabindex='0']").length !== 1) found.push("a tree must have one tab stop");
  }
  for (const svg of visible.filter((each) => each.tagName === "svg")) {
    if (!svg.hasAttribute("role") && svg.getAttribute("aria-hidden") !== "true") found.push(`${where(svg)}: a picture without a role`);
  }
  let level = 0;
  for (const heading of visible.filter((each) => /^H[1-6]$/.test(each.tagName))) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) found.push(`${where(heading)}: a level is left out`);
    level = next;
  }
  if (document.querySelectorAll("main").length !== 1) found.push("one main is needed");
  if (!document.documentElement.lang || !document.title) found.push("the page needs a language and a title");

  const colour = (text) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((each, place) => each * a + under[place] * (1 - a));
  const ground = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
      const style = getComputedStyle(each);
      if (each.tagName === "g") {
        const rect = each.querySelector(":scope > rect");
        if (rect) {
          const [r, g, b, a] = colour(getComputedStyle(rect).fill);
          layers.push([r, g, b, a * Number(getComputedStyle(rect).fillOpacity)]);
        }
      } else layers.push(colour(style.backgroundColor));
    }
    return layers.reverse().reduce((under, layer) => over(layer, under), colour("Canvas").slice(0, 3));
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((each) => (each / 255 <= 0.04045 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  for (const element of visible) {
    const own = [...element.childNodes].some((each) => each.nodeType === 3 && each.textContent.trim());
    if (!own || element.closest(".hidden, script, style, title, option, [aria-busy=true]")) continue;
    const style = getComputedStyle(element);
    const svg = element.tagName === "text";
    const under = ground(element);
    const ink = over(colour(svg ? style.fill : style.color), under);
    const [high, low] = [light(ink), light(under)].sort((one, other) => other - one);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push(`${where(element)} ${JSON.stringify(element.textContent.slice(0, 20))}: contrast ${ratio.toFixed(2)}`);
  }
  return found;
}
