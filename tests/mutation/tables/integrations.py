"""Tables, other formats, the k best trees, spaCy."""

from tests.mutation.mutants import Group, Mutant

GROUPS = (
    Group(
        "integrations, rows",
        ("integrations/test_tables.py",),
        (
            Mutant("Columns.kept", "name != self.text and ", ""),
            Mutant("Columns.kept", "chosen is None or ", ""),
            Mutant("sentences_from_cells", "row=cell.row", "row=None"),
            Mutant("sentences_from_cells", "count.add(cell.where)", "pass"),
            Mutant("json_cells", "if is_first:", "if False:"),
            Mutant("json_cells", "start=first_line", "start=first_line - 1"),
            Mutant("_looks_like_json", "return not ended", "return True"),
            Mutant("check_names", "if name in own:", "if False:"),
            Mutant("_cells", "column or TEXT", "TEXT"),
        ),
    ),
    Group(
        "integrations, Parquet",
        ("integrations/test_parquet.py",),
        (
            Mutant("GivenColumns._taken", "[row.index for row in same]", "list(range(len(same)))"),
            Mutant("GivenColumns.__init__", "ID not in", "ID in"),
            Mutant("GivenColumns._converted", "if name not in known:", "if False:"),
            Mutant("parquet_output:_record", "float(posteriors[i, j])", "float(posteriors[j, i])"),
            Mutant("write_parquet", "start=first", "start=first - 1"),
        ),
    ),
    Group(
        "integrations, brat",
        ("integrations/test_brat.py",),
        (
            Mutant("standoff", "offset += len(text) + 1", "offset += len(text.encode()) + 1"),
            Mutant("standoff", "tokens[after - 1][1]", "tokens[after - 1][0]"),
            Mutant("standoff", '_LINE_ENDS.sub(" ", analysis.sentence.text)', "analysis.sentence.text"),
        ),
    ),
    Group(
        "integrations, gzip",
        ("integrations/test_gzip_output.py",),
        (
            Mutant("whole_members", "used -= len(pending)", "used -= 0"),
            Mutant("whole_members", "if found != size:", "if False:"),
            Mutant("GzipGroups.flush", "mtime=0", "mtime=None"),
            Mutant("GzipGroups.flush", " or not self._handle.tell()", ""),
        ),
    ),
    Group(
        "integrations, best trees",
        ("integrations/test_best.py",),
        (
            Mutant("_best_of", "found.log_weight - log_z", "found.log_weight"),
            Mutant("_best_of", "words > (max_length or words)", "False"),
            Mutant("_best_of", "parser.distributions([sentence])", "parser.distributions([sentence.words])"),
            Mutant("_best_of", "top_k(count)", "top_k(1)"),
        ),
    ),
    Group(
        "integrations, spaCy",
        ("integrations/test_spacy.py",),
        (
            Mutant("spacy_component:_record", "places[j - 1] + 1", "places[j - 1]"),
            Mutant("RamifyComponent._annotate", "if doc[place].text.strip()", ""),
            Mutant("spacy_spans:children", "and start >= after", ""),
            Mutant("spacy_spans:parent", "min(around)[1]", "max(around)[1]"),
            Mutant("spacy_spans:_inside", "-each[1]", "each[1]"),
            Mutant("RamifyComponent.from_disk", "str(rules if rules.is_file() else path / MODEL)", "self.model"),
            Mutant("_not_of_the_model", "name in NOT_PASSED_ON", "False"),
            Mutant("_not_of_the_model", "or Path(folder, name).is_symlink() ", ""),
            Mutant("RamifyComponent.from_bytes", "if not file.resolve()", "if False and not file.resolve()"),
        ),
        slow=True,
    ),
)
