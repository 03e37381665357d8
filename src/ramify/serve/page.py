"""The page as one self-contained document with style and script, so that it also opens from a file.

The script consists of the files of the folder `page`, joined to one module. The Content-Security-Policy of the page has
the checksums of its style and script, so that it cannot run or load anything else, or contact other servers.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from ramify.drawing.html import policy_hash
from ramify.drawing.svg import STYLE

SCRIPTS = ("dom", "server", "tree", "chart", "outline", "marks", "card", "files", "sentence", "main")
"""Order of the scripts: the last one starts the page"""


@dataclass(frozen=True)
class Page:
    """The document and its headers."""

    content: bytes
    headers: dict[str, str]

    @classmethod
    def made(cls) -> Page:
        """The page built from the files of the package."""
        folder = files("ramify.serve").joinpath("page")
        style = STYLE + folder.joinpath("page.css").read_text("utf-8")
        scripts = (folder.joinpath(f"{name}.js").read_text("utf-8") for name in SCRIPTS)
        script = '"use strict";\n' + "\n".join(scripts)
        policy = (
            f"default-src 'none'; script-src {policy_hash(script)}; style-src {policy_hash(style)}; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
        )
        document = folder.joinpath("page.html").read_text("utf-8")
        for mark, content in (("@policy@", policy), ("@style@", style), ("@script@", script)):
            document = document.replace(mark, content, 1)
        headers = {"content-security-policy": f"{policy}; frame-ancestors 'none'"}
        return cls(document.encode(), headers)
