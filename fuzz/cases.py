"""Input for the readers: pieces of their formats, to be combined at random, and huge inputs."""

from __future__ import annotations

from collections.abc import Callable

_SPACES = ["\n", "\r\n", "\t", " ", "\x1c", "\x85", "\u2028", "\u00a0", "\ufeff", "\x00"]
_TREES = ["(", ")", "((", "))", ")))", "()", "(())", "(S", "(NP-SBJ ", "(TOP ", "( (S ", "(NN dog)", "(PU ，)"]
_LEAVES = ["dog", ".", "字", "é", "💥", "-LRB-", "(-NONE- *T*-1)", "(NC##lem=a|b## c)", "##", "(PONCT-X ,)"]
_MARK_UP = ["<S ID=1>", "</S>", "<P>", "<", ">", "<unk>", "<unk>\n"]
_JSON = [
    "{",
    "}",
    "[",
    "]",
    '"',
    ":",
    ",",
    '{"made_by": "ramify prepare"',
    '"words": ',
    '"outputs": ',
    '"ptb"',
    "1e999",
    '{"words": "a dog"}\n',
    '{"words": ["a", "dog"], "id": 1}\n',
    '{"words": null}\n',
    "PAR1",
]
_OPTIONS = ["80/10/10", "8", "/", "train=", "dev=", "test=", "a.mrg", "*", "[!a]", "=", "ptb", "none", "a,b"]
_RULES = [
    "S -> A B [1.0]\n",
    "A -> 'w' [1.0]\n",
    'B -> "x" [1]\n',
    "TOP -> S [1.0]\n",
    "-> ",
    "[0.5]",
    "[1e5]",
    "[.]",
    "|",
    "%start",
]
_EXPERIMENTS = [
    "[data]\na = 'built-in'\n",
    "[models.a]\n",
    "[models.b]\nmodel = 'n-pcfg'\n",
    "[[group]]\nname = 'a'\n",
    "seeds = ",
    "decoders = ['viterbi']\n",
    "[0, 1]\n",
    "'a'\n",
]
_CONLLU = [
    "1\ta\t_\tX\t_\t_\t0\t_\t_\t_\n",
    "1\t10 000\t_\t_\t_\t_\t2\t_\t_\t_\n",
    "2\t.\t_\tPUNCT\t_\t_\t1\t_\t_\t_\n",
    "3\tb\t_\tX\t_\t_\t2\t_\t_\t_\n",
    "1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n",
    "1.1\tc\t_\t_\t_\t_\t_\t_\t_\t_\n",
    "# sent_id = 1\n",
]
_CONSTRAINTS = [
    *("[", "]", "{", "}", "\\[", "\\}", " [a b] ", " {a b} "),
    *(
        '{"must": [[0, 2]]}\n',
        '{"must_not": [[1, 3], [0, 2]]}\n',
        '{"must": [[0, 3]], "must_not": [[',
        "[0, 3], ",
        "{}\n",
    ),
]
PIECES = [
    *(*_SPACES, *_TREES, *_LEAVES, *_MARK_UP, *_JSON, *_OPTIONS, *_RULES, *_EXPERIMENTS, *_CONLLU, *_CONSTRAINTS),
]
ENCODINGS = ["utf-8", "utf-8-sig", "latin-1", "utf-16", "gb18030", "shift_jis"]

_MANY = 30_000
"""Far beyond Python's recursion limit"""
HUGE: dict[str, Callable[[], bytes]] = {
    "nested": lambda: b"(X " * _MANY + b"(NN a) (NN b)" + b")" * _MANY,
    "opened": lambda: b"(" * _MANY,
    "closed": lambda: b")" * _MANY,
    "never closed": lambda: b"(X " * _MANY + b"a",
    "broken lines": lambda: b"(S (NN a)\n" * 10_000,
    "a huge word": lambda: b"(S (NN " + b"w" * 2_000_000 + b") (NN b))",
    "a huge label": lambda: b"(" + "字".encode() * 500_000,
    "a huge entry": lambda: b"<unk>\n" + b"v" * 2_000_000,
    "mark-up": lambda: b"<S " * _MANY,
    "features": lambda: b"(" + b"#" * _MANY + b"(a##" * _MANY,
    "small trees": lambda: b"(NN a)" * 10_000,
    "blank lines": lambda: b"\n" * _MANY,
    "JSON": lambda: b"[" * _MANY + b"]" * _MANY,
    "UTF-16": lambda: "the dog ".encode("utf-16") * _MANY,
    "patterns": lambda: b"train=" + b"*a" * 1_000 + b" dev=" + b"[a-" * 1_000,
}
