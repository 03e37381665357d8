// The page: what was asked, what came back, and where it is shown.
const state = { version: "", systems: [], layout: "auto", sentences: [], results: [], scores: [], current: 0, source: "" };
let server = null;
let view = null;
let turn = 0; // an answer to an earlier question must not replace that to a later one

function show(options = {}) {
  const place = find("result");
  place.hidden = !state.results[0]?.length;
  if (place.hidden) return;
  view = new SentenceView(state, state.current, { onConstrain: isSaved ? null : constrain, ...options });
  place.replaceChildren(results(), ...view.render().filter(Boolean));
  showList();
  view.fit();
}

addEventListener("resize", () => view?.fit());

function results() {
  const all = state.results[0];
  const buttons = Object.entries(DOWNLOADS).map(([text, act]) =>
    make("button", { type: "button", class: "small", onclick: () => act(all) }, text));
  buttons.push(make("button", { type: "button", class: "small", onclick: () => download("tree.svg", all[state.current].formats.svg, "image/svg+xml") }, "SVG"));
  if (!isSaved) buttons.push(make("button", { type: "button", class: "small", onclick: () => savePage(state).catch(fail) }, "This page"));
  const scores = state.scores.map((each, number) => each && make("span", { title: each.signature },
    state.systems.length > 1 ? `${state.systems[number].model}, ${state.systems[number].decoder}: ` : "",
    make("b", {}, `S-F1 ${each.sentence_f1.toFixed(1)}`), ` over ${counted(each.sentences, "sentence")}`)).filter(Boolean);
  return make("div", { class: "head bar-line" },
    make("p", { class: "soft source" }, state.source ? bdi(state.source) : null, ...scores),
    make("div", { class: "tools", role: "group", "aria-label": "Download all trees as" }, make("span", { class: "soft" }, "Download"), ...buttons));
}

function showList() {
  const list = find("list");
  list.hidden = state.sentences.length < 2;
  list.replaceChildren(make("ol", {}, ...state.results[0].map((result, place) => make("li", {},
    make("button", {
      type: "button", dir: "auto", "aria-current": place === state.current ? "true" : null,
      onclick: () => {
        state.current = place;
        show();
        find("sentence").focus({ preventScroll: true });
      },
    }, inBrief(result.text) || "(blank)", result.gold?.score ? make("span", { class: "number" }, ` ${result.gold.score.f1.toFixed(0)}`) : null)))));
}

function fail(error) {
  showProblem(error.message);
}

const sent = ({ text, gold, constraints }) => ({ ...(gold === undefined ? { text } : { gold }), ...(constraints ? { constraints } : {}) });

async function parseAll(sentences, source = "", note = "") {
  const mine = ++turn;
  showProblem("");
  find("go").setAttribute("aria-busy", "true");
  find("result").setAttribute("aria-busy", "true");
  try {
    const systems = chosenSystems();
    const found = [];
    for (const system of systems) {
      found.push(await parseWith(system, state.layout, sentences.map(sent)));
      if (mine !== turn) return;
    }
    Object.assign(state, {
      systems, sentences, source, results: found.map((each) => each.results), scores: found.map((each) => each.scores),
      current: Math.min(state.current, sentences.length - 1),
    });
    show();
    keep(state);
    showProblem(note);
    announce(`Parsed ${counted(sentences.length, "sentence")}.`);
  } catch (error) {
    if (mine === turn) fail(error);
  } finally {
    if (mine === turn) {
      find("go").removeAttribute("aria-busy");
      find("result").removeAttribute("aria-busy");
    }
  }
}

async function constrain(span, kind) {
  const given = state.sentences[state.current];
  const before = { must: [], must_not: [], ...given.constraints };
  const without = (spans) => spans.filter((each) => !sameSpan(each, span));
  const constraints = { must: without(before.must), must_not: without(before.must_not) };
  if (kind !== "free") constraints[kind].push(span);
  const mine = ++turn;
  showProblem("");
  const earlier = state.results.map((each) => each[state.current]);
  try {
    const sentence = { ...given, constraints };
    const found = [];
    for (const system of state.systems) found.push((await parseWith(system, state.layout, [sent(sentence)])).results[0]);
    if (mine !== turn) return;
    state.sentences[state.current] = sentence;
    found.forEach((result, number) => { state.results[number][state.current] = result; });
    const inChart = document.activeElement?.classList.contains("chart");
    const inCard = document.activeElement?.name === "constraint";
    show({ earlier, chosen: view.chosen && { ...view.chosen, node: undefined } }); // the nodes are others now
    if (inChart) find("result").querySelector(".chart").focus();
    if (inCard) find("result").querySelector("input[name=constraint]:checked")?.focus();
    keep(state);
    announce(`${counted(view.marks[0].changed, "constituent")} changed.`);
  } catch (error) {
    if (mine !== turn) return;
    show({ chosen: view.chosen }); // the choice that was refused is undone
    fail(error);
  }
}

const options = (select, names, chosen) => select.replaceChildren(...names.map(([value, text]) =>
  make("option", { value, selected: value === chosen }, text)));

function chosenSystems() {
  const pairs = [0, 1].map((number) => ({ model: find(`model-${number}`).value, decoder: find(`decoder-${number}`).value }));
  return pairs.filter(({ model }) => model);
}

function offerDecoders(number) {
  const model = server.models.find((each) => each.name === find(`model-${number}`).value);
  const before = find(`decoder-${number}`).value;
  options(find(`decoder-${number}`), (model?.decoders ?? []).map((each) => [each, each]), before);
  find("second").hidden = !find("model-1").value;
}

const lines = () => find("text").value.split("\n").filter((line) => line.trim());

function submit() {
  state.current = 0;
  const given = lines();
  if (given.length) parseAll(given.map((text) => ({ text })));
  else fail(new Error("There is no sentence; type one, or open a file."));
}

function submitGold() {
  state.current = 0;
  const trees = splitTrees(find("gold").value);
  if (trees.length) parseAll(trees.map((gold) => ({ gold })));
  else fail(new Error("There is no gold tree; paste one such as (S (NP the dog) (VP barks))."));
}

async function open(file) {
  try {
    const { trees, found, dropped } = await readFile(file, server.limits.sentences);
    const note = dropped ? `${file.name}: the first ${found.length.toLocaleString("en")} sentences are shown, ${dropped.toLocaleString("en")} are left out.` : "";
    state.current = 0;
    find("text").value = trees ? "" : found.slice(0, 20).join("\n");
    if (trees) {
      find("gold-box").open = true;
      find("gold").value = found.join("\n");
    }
    await parseAll(found.map((each) => (trees ? { gold: each } : { text: each })), file.name, note);
  } catch (error) {
    fail(error);
  }
}

function wire() {
  const again = () => { if (state.sentences.length) parseAll(state.sentences, state.source); };
  find("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  find("text").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  });
  find("score").addEventListener("click", submitGold);
  find("gold-box").addEventListener("toggle", () => { find("gold-part").hidden = !find("gold-box").open; });
  find("example").addEventListener("click", () => {
    find("text").value = server.models.find((each) => each.name === find("model-0").value).example;
    submit();
  });
  find("file").addEventListener("change", () => {
    const [file] = find("file").files;
    if (file) open(file);
    find("file").value = "";
  });
  for (const number of [0, 1]) {
    find(`model-${number}`).addEventListener("change", () => {
      offerDecoders(number);
      again();
    });
    find(`decoder-${number}`).addEventListener("change", again);
  }
  find("layout").addEventListener("change", () => {
    state.layout = find("layout").value;
    again();
  });
}

function showScale() {
  for (let step = 0; step <= 10; step++) {
    const opacity = (0.03 + 0.47 * (step / 10) ** 2).toFixed(3);
    find("scale").append(draw("rect", { class: "shade", x: 12 * step, width: 12, height: 14, "fill-opacity": opacity }));
  }
}

async function start() {
  showScale();
  if (isSaved) {
    find("ask").hidden = true;
    if (!savedText) throw new Error("This page was saved without its trees; save it with its own button, or open it from a server.");
    const { cards: kept, ...before } = JSON.parse(savedText);
    Object.assign(state, before);
    for (const [key, card] of kept) cards.set(key, card);
    find("about").textContent = "This is a saved page: you can read and copy its trees, but not change them.";
    find("maker").textContent = `Made by ramify ${state.version}.`;
    show();
    return;
  }
  server = await whenReady();
  state.version = server.version;
  find("maker").textContent = `Made by ramify ${server.version}.`;
  find("about").textContent = server.models.map((each) => `${each.name}: ${each.description}`).join(" · ");
  const names = server.models.map((each) => [each.name, each.name]);
  options(find("model-0"), names);
  options(find("model-1"), [["", "nothing"], ...names], names[1]?.[0] ?? "");
  for (const number of [0, 1]) offerDecoders(number);
  wire();
  find("text").value = server.models[0].example;
  submit();
}

start().catch(fail);
