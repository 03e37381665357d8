import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.corpus.brackets import read_brackets
from ramify.corpus.cleaning import (
    ALL_WORDS,
    PTB_WORD_TAGS,
    PTB_WORDS,
    WordRule,
    guess_word_rule,
    normalise,
    remove_non_words,
)
from ramify.corpus.tree import Parse, make_parse, parse_of_words
from ramify.errors import RamifyError


def tree(text: str) -> Parse:
    (parse,) = read_brackets([text], "text")
    return parse


def leaves(*pairs: tuple[str, str]) -> Parse:
    """A sentence of (tag, word)."""
    return make_parse([word for _, word in pairs], [tag for tag, _ in pairs], [], [])


def test_there_are_36_word_tags() -> None:
    assert len(PTB_WORD_TAGS) == 36


def test_removal_moves_spans_and_takes_emptied_constituents() -> None:
    parse = tree(
        "( (S (`` ``) (NP (DT the) (, ,) (NN dog)) (NP-2 (-NONE- *T*)) (VP (VBZ barks) (PRN (-LRB- -LRB-))) (. .)) )"
    )
    expected = tree("( (S (NP (DT the) (NN dog)) (VP (VBZ barks))) )")
    assert remove_non_words(parse, PTB_WORDS) == expected
    assert remove_non_words(parse, WordRule.from_name("-NONE- `` , . -LRB-")) == expected
    assert remove_non_words(parse, ALL_WORDS) == parse


def test_removal_can_leave_nothing() -> None:
    nothing = remove_non_words(tree("(S (. .) (X (. !)))"), WordRule.from_name("."))
    assert (len(nothing), nothing.labels, nothing.spans.shape) == (0, (), (0, 2))
    assert nothing.spans.dtype == np.int32


def test_ptb_removes_currency_signs_and_keeps_symbols() -> None:
    parse = tree("(NP ($ $) (CD 5) (# #) (SYM =) (HYPH -) (POS 's))")
    assert remove_non_words(parse, PTB_WORDS).words == ("5", "=", "'s")


@pytest.mark.parametrize(
    ("name", "as_written"),
    [
        ("ptb", "ptb"),
        ("none", "none"),
        ("ptb ptb", "ptb"),
        ("PU PU", "PU"),
        (" PONCT", "PONCT"),
        ('. ,\t"', '" , .'),
        ("$, $. $LRB", "$, $. $LRB"),
    ],
)
def test_rules_have_names(name: str, as_written: str) -> None:
    assert str(WordRule.from_name(name)) == as_written
    assert WordRule.from_name(as_written) == WordRule.from_name(name)


@given(st.frozensets(st.text(string.printable[:94].replace(",", ""), min_size=1) | st.just(","), min_size=1))
def test_a_rule_can_be_restored_from_its_name(tags: frozenset[str]) -> None:
    if tags not in ({"ptb"}, {"none"}):
        rule = WordRule(removed=tags)
        assert WordRule.from_name(str(rule)) == rule


@pytest.mark.parametrize("name", ["", "  ", "PU,QUOT"])
def test_useless_names_are_refused(name: str) -> None:
    with pytest.raises(RamifyError):
        WordRule.from_name(name)


def test_guesses_the_penn_treebank_and_its_successors() -> None:
    dog = tree("(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))")
    craft = tree("(NP (NN wild) (HYPH -) (NN type) (AFX non) (-LRB- [) (CD 1) (-RRB- ]))")
    assert guess_word_rule([dog]) == PTB_WORDS
    assert guess_word_rule([dog, craft]) == PTB_WORDS


def test_guesses_punctuation_by_what_it_is_made_of() -> None:
    french = [leaves(("NC", "chien"), ("NC", "%"), ("P", "de"), ("PONCT", "."), ("PONCT", "-LRB-"), ("PONCT", "«"))]
    assert guess_word_rule(french) == WordRule.from_name("PONCT")


def test_a_tag_for_symbols_is_one_for_words() -> None:
    japanese = [leaves(("N", "犬"), ("SYM", "○"), ("SYM", "○"), ("SYM", "−"), ("PU", "。"), ("-LRB-", "「"))]
    assert guess_word_rule(japanese) == WordRule.from_name("-LRB- PU")


def test_traces_are_not_words_and_commas_instead_of_words_do_not_make_a_tag_punctuation() -> None:
    chinese = [leaves(("Caa", "、"), ("Caa", "和"), ("-NONE-", "*pro*"), ("Nab", "狗"))]
    assert guess_word_rule(chinese) == WordRule.from_name("-NONE-")


def test_one_slip_of_the_annotators_does_not_matter_but_many_do() -> None:
    def with_slips(slips: int) -> list[Parse]:
        return [leaves(("no", "hundur"), *[("grm", ".")] * 300, *[("grm", "og")] * slips)]

    assert guess_word_rule(with_slips(2)) == WordRule.from_name("grm")
    assert guess_word_rule(with_slips(30)) == ALL_WORDS


def test_two_leaves_in_a_treebank_are_too_few_to_judge_a_tag() -> None:
    words, rare = [("no", "hundur")] * 50_000, [('"', '"')] * 2
    assert guess_word_rule([leaves(*words, *rare)]) == ALL_WORDS
    assert guess_word_rule([leaves(*words[:100], *rare)]) == WordRule.from_name('"')


def test_nothing_is_removed_from_plain_text() -> None:
    assert guess_word_rule([parse_of_words(["."])]) == ALL_WORDS
    assert guess_word_rule([]) == ALL_WORDS


@pytest.mark.parametrize(
    ("word", "normal"),
    [
        ("The", "the"),
        ("1,234.5", "N"),
        ("1990s", "Ns"),
        ("3-2", "N-N"),
        ("1.", "N."),
        (",5", ",N"),
        ("1,,2", "N,,N"),
        ("5N", "Nn"),
        ("É", "é"),
        ("J\u030c", "\u01f0"),  # only the small letter has a precomposed character with the mark
        ("٣", "٣"),
    ],
)
def test_words_are_normalised(word: str, normal: str) -> None:
    assert normalise(word) == normal
