"""`ramify serve` as a command: errors and output."""

from __future__ import annotations

import socket
import sys
from importlib.resources import files

import pytest

from ramify.errors import RamifyError
from ramify.serve.page import SCRIPTS, Page
from ramify.serve.server import trusted_hosts
from tests.command import ramify
from tests.serve.conftest import FIXTURE


def refused(*arguments: object) -> str:
    result = ramify("serve", *arguments)
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.split())


def test_every_address_needs_a_name():
    assert "such as --name parser.example.org" in refused("-m", FIXTURE, "--host", "0.0.0.0")
    assert "such as --name parser.example.org" in refused("-m", FIXTURE, "--host", "::")
    assert "without port or scheme" in refused("-m", FIXTURE, "--name", "http://a")
    assert "without port or scheme" in refused("-m", FIXTURE, "--name", "a:80")
    assert "without port or scheme" in refused("-m", FIXTURE, "--name", "*")


@pytest.mark.parametrize(
    ("host", "names", "trusted"),
    [
        ("127.0.0.1", [], {"localhost", "127.0.0.1", "[::1]"}),
        ("localhost", [], {"localhost", "127.0.0.1", "[::1]"}),
        ("::1", [], {"localhost", "127.0.0.1", "[::1]"}),
        ("192.0.2.7", [], {"192.0.2.7"}),
        ("2001:db8::7", ["a.example"], {"[2001:db8::7]", "a.example"}),
        ("0.0.0.0", ["a.example"], {"localhost", "127.0.0.1", "[::1]", "a.example"}),
    ],
)
def test_trusted_names(host, names, trusted):
    assert set(trusted_hosts(host, names)) == trusted


def test_mistakes_are_one_sentence(tmp_path):
    assert "nowhere: " in refused("-m", tmp_path / "nowhere")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port} (" in refused("-m", FIXTURE, "--port", port)
    with pytest.raises(RamifyError):
        trusted_hosts("0.0.0.0", [])


def test_missing_packages_are_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("ramify.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert "pip install 'ramify[serve]'" in refused("-m", FIXTURE)


def test_the_page_has_all_its_files():
    folder = files("ramify.serve").joinpath("page")
    assert {file.name for file in folder.iterdir()} == {"page.html", "page.css", *(f"{name}.js" for name in SCRIPTS)}
    page = Page.made().content.decode()
    assert "@script@" not in page
    assert "innerHTML" not in page
    assert "</script>" not in page.split('<script type="module">')[1].rsplit("</script>", 1)[0]
    assert not any(word in page for word in ("http://127", "https://", "//cdn"))
