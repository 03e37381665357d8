// Elements, made without markup: whatever a sentence, label or file name holds stays text.
const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

const make = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);
const find = (id) => document.getElementById(id);

function announce(text) {
  find("live").textContent = text;
}

function showProblem(text) {
  find("problem").hidden = !text;
  find("problem").textContent = text || "";
}

// Words that run from right to left make the browser order them so; the rest of the page stays as it is.
const bdi = (text, attributes = {}) => make("bdi", { dir: "auto", ...attributes }, text);
const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
const sameSpan = (one, other) => Boolean(one && other && one[0] === other[0] && one[1] === other[1]);
const keyOf = (span) => `${span[0]}-${span[1]}`;
const wordsOf = (result, [start, end]) => result.tokens.slice(start, end).join(" ");
const inBrief = (text) => (text.length > 80 ? `${text.slice(0, 38)} … ${text.slice(-38)}` : text);
