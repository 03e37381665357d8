"""Readers, cleaning, vocabulary, text, treebanks to be prepared, the built-in corpus."""

from tests.mutation.mutants import Group, Mutant

GROUPS = (
    Group(
        "corpus, trees and words",
        ("test_brackets.py", "test_cleaning.py", "test_vocabulary.py", "test_reading.py", "test_text.py"),
        (
            Mutant("Punctuation.from_trees", " - words\n", "\n"),
            Mutant("Punctuation.__contains__", "token not in self.never and ", ""),
            Mutant("OUTERMOST_LABELS", ', "VROOT"', ""),
            Mutant("_TreeBuilder.close", "UNTAGGED if outermost else ", ""),
            Mutant("write_brackets", "_escaped(label) or UNTAGGED", "_escaped(label)"),
            Mutant("_TOKEN", ", re.ASCII", ""),
            Mutant(
                "normalise",
                "unicodedata.normalize(form, unicodedata.normalize(form, word).lower())",
                "unicodedata.normalize(form, word).lower()",
            ),
            Mutant("_NUMBER", "(?:[,.][0-9]+)*", "(?:[,.][0-9]+)?"),
            Mutant("guess_word_rule", "punctuation[tag] > count / 2", "True"),
            Mutant("guess_word_rule", " and count >= _TOO_RARE * tokens.total()", ""),
            Mutant("keep_leaves", "spans[:, 0] < spans[:, 1]", "spans[:, 0] <= spans[:, 1]"),
            Mutant("Vocabulary.from_counts", "word != UNKNOWN and ", ""),
            Mutant(
                "count_words",
                "counts[normalise(form, normal_form)] += count",
                "counts[normalise(form, normal_form)] = count",
            ),
            Mutant("Vocabulary.encode", "normalise(word, self.normal_form), 0)", "word, 0)"),
            Mutant("Corpus.of_lengths", "len(p) <= longest", "len(p) < longest"),
            Mutant("Corpus.words_only", "if len(parse) > 0", "if len(parse) >= 0"),
            Mutant("guess_kind", 'in ("", "(", ")")', 'in ("", "(")'),
            Mutant("decoded", "if number == 1 else text", "if number == 0 else text"),
            Mutant("_with_hyphenated_words", "before[1] - before[0] > 1 and ", ""),
            Mutant("split_at_spaces", "start += len(token)\n", "start += 0\n"),
            Mutant("split_prose", "spans.pop()[0] if not blank and len(spans) > 1 else len(text)", "len(text)"),
            Mutant("LineReader.is_dry", "not self._lines_ready and ", ""),
        ),
    ),
    Group(
        "corpus, treebanks",
        ("prepare", "test_builtin.py"),
        (
            Mutant("split_of_article", "301 <= number <= 325", "301 <= number <= 324"),
            Mutant("SECTIONS", "range(2, 22)", "range(2, 21)"),
            Mutant(
                "chinese_encoding", "2 * sum(map(_is_utf8, telling)) >= len(telling)", "all(map(_is_utf8, telling))"
            ),
            Mutant("_FEATURES", "+?)##", "+)##"),
            Mutant("with_plain_punctuation", "head if head in punctuation else tag", "head"),
            Mutant(
                "find_spmrl",
                '"train" if "train" in splits else "train5k"',
                '"train5k" if "train5k" in splits else "train"',
            ),
            Mutant("trees_begun", "max(0, depth - 1)", "depth - 1"),
            Mutant("block_splits", "tree // size % len(blocks)", "tree % len(blocks)"),
            Mutant("builtin_treebank", "np.random.default_rng([seed, stream])", "np.random.default_rng([seed, 0])"),
            Mutant(
                "BinaryGrammar.from_nltk",
                "probability / phrase_mass[parent] * left_share * right_share",
                "probability * left_share * right_share",
            ),
            Mutant(
                "BinaryGrammar._try_sample",
                "agenda += (len(labels), right, left)",
                "agenda += (len(labels), left, right)",
            ),
            Mutant("_read_lexicon", "(rank + offset) ** -exponent", "(rank + offset) ** -1.0"),
        ),
    ),
)
