// What the page asks its server; a saved page has none, and asks nothing.
const savedText = find("saved").textContent.trim();
const isSaved = savedText !== "" || location.protocol === "file:";
const FORMATS = ["brackets", "forest", "qtree", "svg"];
const AT_ONCE = 32;

async function ask(path, body) {
  let answer;
  try {
    answer = await fetch(path, body && {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Error("The server does not answer; check that it is running, or start it again.");
  }
  const content = await answer.json().catch(() => null);
  if (!answer.ok) throw new Error(content?.detail ?? `The server answered ${answer.status} without a reason.`);
  return content;
}

// A few sentences at a time: the first trees appear while the rest is parsed.
async function parseWith(system, layout, sentences, onResults) {
  const results = [];
  let scores = null;
  // Scores are of all trees together, so these go in one request.
  const together = sentences.some((each) => each.gold !== undefined) ? sentences.length : AT_ONCE;
  for (let start = 0; start < sentences.length; start += together) {
    const answer = await ask("/v1/parse", {
      sentences: sentences.slice(start, start + together),
      model: system.model,
      decoder: system.decoder,
      layout,
      formats: FORMATS,
      posteriors: true,
      drawing: true,
    });
    results.push(...answer.results);
    scores = answer.scores ?? scores;
    onResults?.(results);
  }
  return { results, scores };
}

const cards = new Map();

function cardOf(model, symbol) {
  const key = JSON.stringify([model, symbol]);
  if (!cards.has(key)) {
    const path = `/v1/grammar?model=${encodeURIComponent(model)}&symbol=${encodeURIComponent(symbol)}`;
    const found = isSaved
      ? Promise.reject(new Error("This symbol is not described in the saved page."))
      : ask(path).then((answer) => answer.symbol);
    cards.set(key, found);
    found.then((card) => cards.set(key, card), () => cards.delete(key));
  }
  return Promise.resolve(cards.get(key));
}

// The models, once they have parsed their first sentence.
async function whenReady() {
  for (;;) {
    const found = await ask("/v1/models");
    if (found.ready) return found;
    announce("The models are being prepared.");
    find("about").textContent = "The models are being prepared; this takes up to a minute the first time.";
    await new Promise((resolve) => setTimeout(resolve, 700));
  }
}
