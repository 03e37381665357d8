"""Bracketings with span scores, and the student that learns them."""

from tests.mutation.mutants import Group, Mutant

GROUPS = (
    Group(
        "bracketings, distribution and kernels",
        ("structures/test_bracketings.py",),
        (
            Mutant("bracketings.kernels:inside", "if peak > -np.inf:", "if peak > -np.inf or True:"),
            Mutant("bracketings.kernels:inside", "peak + weights[i, j]", "peak"),
            Mutant("bracketings.kernels:inside", "- peak)", ")"),
            Mutant("bracketings.kernels:outside", "if chart[0, N] == -np.inf:", "if False:"),
            Mutant("bracketings.kernels:outside", "posterior, 0", "posterior, posterior"),
            Mutant("bracketings.kernels:outside", "for width in range(N, 0, -1):", "for width in range(N, 1, -1):"),
            Mutant("bracketings.compiled:_run", "kernel(first, count, *arrays)", "kernel(0, count, *arrays)"),
            Mutant("bracketings.compiled:_Inside.backward", ".mul_(upstream[:, None, None])", ""),
            Mutant(
                "bracketings.reference:inside", "torch.where(log_z > -torch.inf, log_z, -torch.inf)", "log_z.clone()"
            ),
            Mutant("BracketingForest.edges", "self.inner(i, k) + self.inner(k, j)", "self.inner(i, k)"),
            Mutant("BracketingForest.top", "self.inner(0, self.length)", "self.inner(0, self.length) * 0"),
            Mutant("Bracketings.argmax", "self.forest(b, BEST)", "self.forest(b, SUM)"),
            Mutant("Bracketings.log_weights", "self.log_potentials + self.span_scores", "self.span_scores"),
        ),
    ),
    Group(
        "bracketings, the student",
        ("models/test_crf.py",),
        (
            Mutant("CRF._fence_posts", "lengths + 1] = self.words + 1", "N + 1] = self.words + 1"),
            Mutant("CRF._fence_posts", "new_full((B, N + 2), self.words)", "new_full((B, N + 2), self.words + 1)"),
            Mutant("CRF._fence_posts", "-backward[:, 1:]", "backward[:, 1:]"),
            Mutant("CRF._fence_posts", "forward[:, :-1]", "forward[:, 1:]"),
            Mutant("CRF._fence_posts", "(lengths + 2).cpu()", "torch.full_like(lengths, N + 2).cpu()"),
            Mutant(
                "CRF._fence_posts", "apply_dropout(self.embedding(framed), dropout, noise)", "self.embedding(framed)"
            ),
            Mutant("CRF.forward", "ends = begins + self.hidden.bias", "ends = begins"),
            Mutant("CRF.forward", ".relu_()", ""),
            Mutant("CRF.forward", "begins[:, 0, :0]", "begins.new_zeros(B, 0)"),
            Mutant("CRF.objective", "torch.where(is_taught, ", "torch.where(is_taught | True, "),
            Mutant("CRF.objective", "expected - trees", "expected + trees"),
            Mutant("mean_posteriors", "torch.where(is_taught, whole, 1)", "torch.ones_like(whole)"),
            Mutant("mean_posteriors", "span_scores.triu(2)", "span_scores.triu(3)"),
            Mutant("mean_posteriors", "> BINARY_TOLERANCE * spans", "> spans"),
            Mutant("CRF.needs_teachers", "needs_teachers = True", "needs_teachers = False"),
        ),
    ),
)
