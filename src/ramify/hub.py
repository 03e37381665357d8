"""Models of the Hugging Face Hub, if huggingface_hub is installed. Does not import torch.

Only the files of a model folder are downloaded, to a folder of regular files, because the Hub's cache consists of
links, which a model folder may not contain. They are checked when they are loaded, like those of any other folder.
"""

from __future__ import annotations

import re
import warnings
from functools import cache
from pathlib import Path

from ramify.errors import RamifyError, RamifyWarning
from ramify.storage.model_files import CARD, SPELLING, SPLITTER, VOCABULARY, WEIGHTS

_NAME = re.compile(r"(?P<repository>[\w-][\w.-]*/[\w-][\w.-]*)(?:@(?P<revision>[\w-][\w./-]*))?", re.ASCII)
_COMMIT = re.compile("[0-9a-f]{40}")
FILES = ("config.json", VOCABULARY, WEIGHTS, SPELLING, SPLITTER, CARD)
PATTERNS = [*FILES, *(f"member-*/{name}" for name in FILES)]


@cache
def download(name: str) -> Path:
    """The folder of the model `owner/name@revision`, downloaded if necessary."""
    found = _NAME.fullmatch(name)
    if found is None or ".." in name:
        raise RamifyError(f"hf:{name}: this is not a valid model name; give hf:owner/name@revision.")
    repository, revision = found["repository"], found["revision"]
    if revision is None:
        raise RamifyError(
            f"hf:{name}: the revision is missing; give hf:{name}@COMMIT, so that the model cannot change."
        )
    try:
        from huggingface_hub import model_info, snapshot_download
        from huggingface_hub.constants import HF_HOME
    except ImportError as error:
        raise RamifyError(f"hf:{name}: needs huggingface_hub; install it with: pip install 'ramify[hub]'.") from error
    try:
        commit = revision if _COMMIT.fullmatch(revision) else str(model_info(repository, revision=revision).sha)
        place = Path(HF_HOME) / "ramify" / f"{repository}@{commit}".replace("/", "--")
        snapshot_download(repository, revision=commit, allow_patterns=PATTERNS, local_dir=place)
    except Exception as error:  # any error of the network, the Hub or its library
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise RamifyError(
            f"hf:{name}: cannot be downloaded ({reason[:200]}); check the name and the network."
        ) from error
    if commit != revision:
        warnings.warn(
            f"hf:{name}: uses the current commit {commit}; give hf:{repository}@{commit} to get the same model every "
            "time.",
            RamifyWarning,
            stacklevel=3,
        )
    return place
