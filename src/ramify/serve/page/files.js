// Files in and out: reading one, copying, downloading, and the page itself with its trees.
const LARGEST_FILE = 1 << 20;
const MOST_SENTENCES = 1000;

async function readFile(file, mostTrees) {
  if (file.size > LARGEST_FILE) throw new Error(`${file.name}: has more than ${LARGEST_FILE.toLocaleString("en")} bytes; open a smaller file, or use ramify parse.`);
  let content;
  try {
    content = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name}: is not text in UTF-8; save it as such.`);
  }
  const trees = content.trimStart().startsWith("(");
  const found = trees ? splitTrees(content) : content.split(/\r?\n/).filter((line) => line.trim());
  if (!found.length) throw new Error(`${file.name}: holds no sentence.`);
  const most = trees ? mostTrees : MOST_SENTENCES; // trees are scored together, in one request
  return { trees, found: found.slice(0, most), dropped: Math.max(found.length - most, 0) };
}

// One tree for each bracket that is not inside another; what is wrong with them the server says.
function splitTrees(content) {
  const found = [];
  let depth = 0;
  let start = 0;
  for (let place = 0; place < content.length; place++) {
    if (content[place] === "(" && depth++ === 0) {
      const outside = content.slice(start, place).trim();
      if (outside) found.push(outside);
      start = place;
    }
    if (content[place] === ")" && depth > 0 && --depth === 0) {
      found.push(content.slice(start, place + 1).replace(/\s+/g, " "));
      start = place + 1;
    }
  }
  const rest = content.slice(start).trim();
  return rest ? [...found, rest] : found;
}

async function copy(content, what) {
  try {
    await navigator.clipboard.writeText(content);
  } catch {
    // Pages that are neither on this machine nor encrypted have no clipboard of that kind.
    const area = make("textarea", { class: "hidden", "aria-hidden": "true" });
    area.value = content;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  announce(`Copied as ${what}.`);
}

function download(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = make("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
  announce(`Downloaded ${name}.`);
}

const asRecord = ({ tree, chart, ...record }) => JSON.stringify(record);

const DOWNLOADS = {
  Brackets: (results) => download("trees.trees", results.map((each) => `${each.formats.brackets}\n`).join(""), "text/plain"),
  JSON: (results) => download("trees.jsonl", results.map((each) => `${asRecord(each)}\n`).join(""), "application/json"),
  LaTeX: (results) => download("trees.tex", results.map((each) => `${each.formats.forest}\n`).join(""), "text/plain"),
};

// What `#saved` holds goes wherever the document goes, by this or by the browser's own command.
function keep(state) {
  const plain = { ...state, cards: [...cards].filter(([, card]) => !(card instanceof Promise)) };
  find("saved").textContent = JSON.stringify(plain).replaceAll("<", "\\u003c");
}

async function savePage(state) {
  const symbols = state.systems.flatMap((system, number) => state.results[number].flatMap((result) =>
    [...new Set(result.constituents.map(([, , label]) => label))].map((label) => [system.model, label])));
  for (const [model, symbol] of new Map(symbols.map((each) => [JSON.stringify(each), each])).values()) {
    await cardOf(model, symbol).catch(() => null);
  }
  keep(state);
  const copied = document.documentElement.cloneNode(true);
  for (const id of ["result", "list", "live", "problem", "about", "maker", "scale"]) copied.querySelector(`#${id}`).replaceChildren();
  download("ramify.html", `<!DOCTYPE html>\n${copied.outerHTML}\n`, "text/html");
}
