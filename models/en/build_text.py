"""The text that the bundled English model is learnt from: one sentence a line, tokens divided by spaces.

    python models/en/build_text.py DATA OUT

DATA holds `raw/en-speeches.prose.txt` and `en-craft`; OUT gets `train.txt`, and en-craft's dev trees as `test.trees`,
on which `ramify focus` reports every stage. Only the words of en-craft's training trees are used.

Both texts follow the conventions of the Penn Treebank, and so does `--tokenise penn`, with which the model reads: what
CRAFT divides at hyphens and slashes is joined again, and its brackets are written as in prose. Every fourth sentence of
the speeches is written with typographic apostrophes, which they do not have and other prose does.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from ramify.corpus.reading import learn_splitter, read_sentences
from ramify.corpus.text import TextRules
from ramify.corpus.tree import Parse
from ramify.storage.files import write_atomically

BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
HYPHEN = "HYPH"
TYPOGRAPHIC_EVERY = 4
CLITIC = re.compile(r"^(n)?'(t|s|m|d|re|ve|ll)$", re.IGNORECASE)
RUN_TOGETHER = re.compile(r"(?<=[a-z]{2}\.)(?=[A-Z][a-z])")
STAGE_DIRECTION = re.compile(r"\[(?:laughter|applause)\]", re.IGNORECASE)


def speeches(path: Path) -> Iterator[str]:
    """The sentences of the addresses, tokenised."""
    rules = TextRules("penn", splitter=learn_splitter(path))
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    cleaned = (STAGE_DIRECTION.sub("", RUN_TOGETHER.sub(" ", line)) for line in lines)
    for number, sentence in enumerate(rules.sentences(cleaned, str(path))):
        tokens = list(sentence.tokens)
        if number % TYPOGRAPHIC_EVERY == 0:
            tokens = [CLITIC.sub(lambda found: found[0].replace("'", "’"), token) for token in tokens]
        yield " ".join(tokens)


def joined_at_hyphens(parse: Parse) -> list[str]:
    """The tokens of a tree of CRAFT as the Penn Treebank divides them: `neuron-packing` is one."""
    tokens: list[str] = []
    join = False
    for word, tag in zip(parse.words, parse.tags, strict=True):
        if join or (tag == HYPHEN and tokens):
            tokens[-1] += word
            join = tag == HYPHEN
        else:
            tokens.append(BRACKETS.get(word, word))
    return tokens


def main(data: Path, out: Path) -> None:
    """Write the files."""
    articles = [
        " ".join(joined_at_hyphens(parse)) for parse in read_sentences(data / "en-craft" / "train.trees").parses
    ]
    addresses = [line for line in speeches(data / "raw" / "en-speeches.prose.txt") if line]
    # One after the other in turns, so that the held-out sentences are of both.
    shorter, longer = sorted([articles, addresses], key=len)
    step = len(longer) / len(shorter)
    mixed = [*zip((i * step for i in range(len(shorter))), shorter, strict=True), *enumerate(longer)]
    lines = [line for _, line in sorted(mixed, key=lambda each: each[0])]
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "train.txt", "".join(f"{line}\n" for line in lines).encode())
    write_atomically(out / "test.trees", (data / "en-craft" / "dev.trees").read_bytes())
    print(f"{out / 'train.txt'}: {len(articles):,} sentences of articles, {len(addresses):,} of addresses")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
