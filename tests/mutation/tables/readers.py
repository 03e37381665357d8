"""Language models with distances."""

from tests.mutation.mutants import Group, Mutant

GROUPS = (
    Group(
        "language models, words",
        ("models/test_next_word.py",),
        (
            Mutant("NextWordModel._log_probability", "real = steps <= lengths", "real = steps < lengths"),
            Mutant("NextWordModel._log_probability", "steps == lengths[:, None], self.words", "steps < 0, self.words"),
            Mutant(
                "NextWordModel._log_probability", "self.symbol_embedding, self.symbol_bias", "self.symbol_embedding"
            ),
            Mutant("NextWordModel._inputs", "value=self.words", "value=0"),
            Mutant("NextWordModel.distances", "[1][:, 1:]", "[1][:, :-1]"),
            Mutant("NextWordModel.distances_and_objective", "distances[:, 1:]", "distances[:, :-1]"),
            Mutant("drop_units", "len(x), 1, x.shape[2]", "len(x), x.shape[1], x.shape[2]"),
            Mutant("drop_units", "torch.ones(len(x), 1,", "torch.ones(1, 1,"),
            Mutant("_unlabelled", "Decoded(log_probability", "Decoded(math.nan"),
        ),
        slow=True,
    ),
    Group(
        "language models, ON-LSTM",
        ("models/test_on_lstm.py",),
        (
            Mutant("PARSING_LAYER", "= 2", "= 1"),
            Mutant("ONLSTM.read", "min(PARSING_LAYER, len(distances)) - 1", "-1"),
            Mutant("ONLSTM.__init__", "[width] * (layers - 1), embedding]", "[width] * (layers - 1), width]"),
            Mutant("ONLSTM.__init__", "if size % CHUNK:", "if size < CHUNK:"),
            Mutant("OrderedLayer.forward", "write = 1 - skip", "write = skip"),
            Mutant("OrderedLayer.forward", "(keep - overlap)", "keep"),
            Mutant("OrderedLayer.forward", "(write - overlap)", "write"),
            Mutant("OrderedLayer.forward", "f, i, o = of_units", "i, f, o = of_units"),
            Mutant("OrderedLayer.forward", "o * c.tanh()", "o * c"),
            Mutant("OrderedLayer.forward", "1 - torch.stack(kept, 1)", "torch.stack(kept, 1)"),
            Mutant(
                "OrderedLayer.forward", "apply_dropout(self.of_state.weight, dropout, noise)", "self.of_state.weight"
            ),
        ),
        slow=True,
    ),
    Group(
        "language models, PRPN",
        ("models/test_prpn.py",),
        (
            Mutant("SLOTS", "= 15", "= 16"),
            Mutant("LOOK_BACK", "= 5", "= 4"),
            Mutant("RESOLUTION", "= 0.1", "= 0.2"),
            Mutant("PRPN.read", "slot_gates(next_distances, distances)", "slot_gates(distances, distances)"),
            Mutant("slot_gates", ".tril()", ".tril(-1)"),
            Mutant("PRPN.read", "hidden[:, :-1], (0, 0, 1, 0)", "hidden[:, 1:], (0, 0, 1, 0)"),
            Mutant(
                "PRPN._hidden_states",
                "memory[-SLOTS:]",
                "memory",
                equivalent="the gates of older slots are zero, so that leaving them out only saves work",
            ),
            Mutant("PRPN._hidden_states", "of_key = of_key / math.sqrt(width)", "of_key = of_key / 1"),
            Mutant("PRPN._hidden_states", "f, i, o = cell", "i, f, o = cell"),
            Mutant("slot_gates", "[:, None]) / RESOLUTION + 1)", "[:, None]) / RESOLUTION)"),
            Mutant("slot_gates", ".flip(-1).cumprod(-1).flip(-1)", ".cumprod(-1)"),
            Mutant("gated_softmax", ".exp() * gates", ".exp()"),
            Mutant("gated_softmax", " + EPSILON)", ")"),
        ),
        slow=True,
    ),
)
