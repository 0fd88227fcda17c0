"""`python -m validation`: what it runs, keeps, reports and returns; the texts of the claims; their closed forms."""

import importlib
import json
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import sgdsde as sg

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))  # last, so that the package that is tested stays the one it was

from validation import _figures, _linear, _markdown, _report, _runner  # noqa: E402
from validation.__main__ import main  # noqa: E402
from validation.claim import Claim, at_least, at_most, bounded, statistical  # noqa: E402

PAGES = sorted(p.stem for p in (ROOT / "validation").glob("[!_]*.py") if p.stem not in ("claim", "data"))

PAGE = """
from pathlib import Path
from validation.claim import Claim, bounded

def run(settings, seed):
    with (Path(__file__).parent / "ran.txt").open("a") as file:
        file.write(f"{settings['x']} {seed}\\n")
    BODY
    return [bounded("a number < 2 & its law", settings["x"] + 0.25, 1.0, 0.5),
            bounded("a wrong law", settings["x"], WRONG, 0.5, control=True),
            bounded("beyond <the> limit", settings["x"], 7.0, 0.5, limit=True)], {"y": [1, 2]}

def draw(figure, data):
    left, right = figure.subplots(1, 2)
    left.plot(data["y"], color="#0072B2", label="0.12345")
    left.legend()
    right.loglog([0.001, 0.5], [1, 2])

CLAIM = Claim("NAME", "a statement of NAME", "a source", {"x": 1.0}, {"x": 1.125}, run, draw, paper="a paper",
              could_fail="in this way", holds="here", fails_where="there", caption="a figure", deviation="<none>")
"""


DRAWINGS = _figures.drawings


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A package of claims: write(name, body, wrong law) adds one; go(words) runs them, without figures to be quick."""
    monkeypatch.setattr(_figures, "drawings", lambda *_: {})
    name = f"claims_{abs(hash(tmp_path))}"
    home = tmp_path / name
    home.mkdir()
    (home / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)

    class Folder:
        out = tmp_path / "out"

        def write(self, page, body="pass", wrong="3.0"):
            text = PAGE.replace("NAME", page).replace("BODY", body).replace("WRONG", wrong)
            (home / f"{page}.py").write_text(text)

        def go(self, *words, jobs=1):
            for module in [m for m in sys.modules if m.startswith(name)]:
                del sys.modules[module]
            importlib.invalidate_caches()
            return main([*words, "--jobs", str(jobs), "--out", str(self.out)], importlib.import_module(name))

        def ran(self):
            return (home / "ran.txt").read_text().splitlines() if (home / "ran.txt").exists() else []

        def page(self):
            return (self.out / "report.html").read_text(encoding="utf-8")

    yield Folder()
    for module in [m for m in sys.modules if m.startswith(name)]:
        del sys.modules[module]


# --- the claims themselves --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_a_claim_says_everything_a_report_needs(page):
    claim = importlib.import_module(f"validation.{page}").CLAIM
    assert isinstance(claim, Claim) and claim.name == page.replace("_", "-")
    for field in ("statement", "source", "paper", "could_fail", "holds", "fails_where", "caption"):
        assert len(getattr(claim, field)) > 10, field
    assert set(claim.quick) == set(claim.full)
    json.dumps([dict(claim.quick), dict(claim.full)])
    assert "control=" in (ROOT / "validation" / f"{page}.py").read_text(encoding="utf-8")


def test_all_claims_are_found():
    found = _runner.claims()
    assert sorted(found.values()) == [f"validation.{page}" for page in PAGES] and len(found) >= 17


@pytest.mark.parametrize("depth", [2, 4])
def test_the_data_are_exact_and_the_closed_forms_rest(depth):
    V = _linear.orthogonal(3, 1) @ np.diag([1.5, 1.0, 0.5]) @ _linear.orthogonal(4, 2)[:3]
    Sigma_x, Sigma_eps = np.diag([2.0, 1.0, 0.5, 0.3]), np.array([[1.0, 0.2, 0.0], [0.2, 0.5, 0.1], [0.0, 0.1, 2.0]])
    X, Y = _linear.every_pair(V, Sigma_x, Sigma_eps, 3)
    eps, n = Y - X @ V.T, len(X)
    outer = (X * np.sum(eps**2, axis=1)[:, None]).T @ X / n
    for found, exact in ((X.T @ X / n, Sigma_x), (eps.T @ eps / n, Sigma_eps), (outer, np.trace(Sigma_eps) * Sigma_x)):
        np.testing.assert_allclose(found, exact, atol=1e-13)
    np.testing.assert_allclose(eps.T @ X / n, 0, atol=1e-14)
    if depth == 2:
        layers = _linear.two_layers(V, Sigma_x, Sigma_eps, O=_linear.orthogonal(3, 4))
        assert _linear.mismatch(*layers, np.trace(Sigma_eps) * Sigma_x, np.trace(Sigma_x) * Sigma_eps) < 1e-13
    else:
        layers, kappa = _linear.deep(V, Sigma_x, Sigma_eps, depth)
        assert np.sum(layers[1] ** 2) == pytest.approx(3 * kappa, rel=1e-13)
    np.testing.assert_allclose(np.linalg.multi_dot(layers[::-1]), V, atol=1e-13)
    model = sg.models.DeepLinear([4, *[3] * (depth - 1), 3])
    problem = sg.SGD(model, X, Y, learning_rate=0.01)
    for layer in range(1, depth):
        for B in (np.eye(3), np.ones((3, 3))):
            assert abs(sg.Charge(model.generator(B, layer)).rate(problem, _linear.theta_of(*layers))) < 1e-13


def test_with_decay_the_formula_is_the_minimum_of_its_potential():
    V, Sigma_x, Sigma_eps = np.diag([1.0, 0.5]), np.diag([2.0, 0.5]), np.diag([0.3, 1.0])
    X, Y = _linear.every_pair(V, Sigma_x, Sigma_eps, 0)
    model = sg.models.DeepLinear([2, 2, 2])
    problem = sg.SGD(model, X, Y, learning_rate=0.02, gamma=0.03)
    noise = 2 * problem.sigma2
    M_x, M_eps = (0.03 * np.eye(2) + noise * np.trace(b) * a for a, b in ((Sigma_x, Sigma_eps), (Sigma_eps, Sigma_x)))
    theta = _linear.theta_of(*_linear.two_layers_weighted(V, M_x, M_eps))
    assert abs(sg.Charge(model.generator(np.array([[1.0, 0.3], [0.3, -2.0]]))).rate(problem, theta)) < 1e-14


# --- checks -----------------------------------------------------------------------------------------------------------


def test_what_passes_and_what_is_good():
    assert statistical("", 1.4, 1.0, 0.1).passed and not statistical("", 1.6, 1.0, 0.1).passed
    assert statistical("", 1.25, 1.0, 0.1).share == pytest.approx(0.5)
    for lost in (np.nan, np.inf):
        assert not statistical("", lost, 1.0, 0.1).passed and not bounded("", lost, 1.0, 0.1).passed
        assert not at_most("", lost, 1.0).passed
    assert not at_least("", np.nan, 1.0).passed and at_least("", 1.0, 1.0).passed
    for kind in ("control", "limit"):
        assert not bounded("", 1.0, 1.0, 0.1, **{kind: True}).good and bounded("", 2.0, 1.0, 0.1, **{kind: True}).good


# --- running ----------------------------------------------------------------------------------------------------------


def test_a_sound_claim_gives_zero_and_a_report(folder, capsys):
    folder.write("one")
    folder.write("two")
    assert folder.go() == 0
    out, err = capsys.readouterr()
    assert "one, seed 1" in out and "control: a wrong law" in out and "fails, as it must" in out
    assert "[2/2] two, seed 1: as it must be" in err
    assert "1/1       1/1     1/1" in next(line for line in out.splitlines() if line.startswith("one "))
    page = folder.page()
    for text in ("a statement of one", "a source", "in this way", "2 of 2 claims", "a number &lt; 2 &amp; its law",
                 "Limit: beyond &lt;the&gt; limit", "&lt;none&gt;", "1.25", "x = 1"):  # fmt: skip
        assert text in page, text
    assert "<the>" not in page and "< 2" not in page and "<none>" not in page
    numbers = json.loads((folder.out / "report.json").read_text())
    assert [check["measured"] for check in numbers["one"][0]["checks"]] == [1.25, 1.0, 1.0]


def test_the_table_of_claims_as_markdown(folder, tmp_path, capsys):
    folder.write("sound")
    table = tmp_path / "docs" / "claims.md"
    assert folder.go("--quick", "--table", str(table)) == 0
    text = table.read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith("| `sound`")]
    assert "1 of 1 checks hold; closest: a number \\< 2 & its law, 50 % of what is allowed." in row
    assert "there *beyond \\<the\\> limit: 1, not 7. 1 of 1 controls fail.*" in row and row.count(" | ") == 3
    assert _markdown.escape("|a_b|") == r"\|a\_b\|" and "FAILED" not in text
    folder.write("unsound", wrong="1.0")
    assert folder.go("--quick", "--table", str(table)) == 1 and "**FAILED**" in table.read_text(encoding="utf-8")


def test_the_report_needs_nothing_beside_it_and_is_well_formed(folder, monkeypatch):
    monkeypatch.setattr(_figures, "drawings", DRAWINGS)
    folder.write("one")
    folder.write("two")
    folder.go()
    page = folder.page()
    for word in ("src=", "@import", "<link", "<script", "url(http", 'href="http'):
        assert word not in page, word
    assert "prefers-color-scheme: dark" in page and 'name="viewport"' in page and "max-width: 46rem" in page

    class Reader(HTMLParser):
        open_tags, ids, targets = [], [], []

        def handle_starttag(self, tag, attrs):
            attrs = dict(attrs)
            self.ids += [attrs["id"]] if "id" in attrs else []
            self.targets += [v[1:] for k, v in attrs.items() if k.endswith("href") and v.startswith("#")]
            if tag not in ("meta", "br"):
                self.open_tags.append(tag)

        def handle_startendtag(self, tag, attrs):
            self.handle_starttag(tag, attrs)
            self.open_tags.pop()

        def handle_endtag(self, tag):
            assert self.open_tags.pop() == tag

    reader = Reader()
    reader.feed(page)
    assert reader.open_tags == [] and len(set(reader.ids)) == len(reader.ids)
    assert set(reader.targets) <= set(reader.ids)  # links, and the markers that figures use


@pytest.mark.parametrize("body, wrong, word", [
    ("settings = {'x': 2.0}", "3.0", "FAILED"),
    ("pass", "1.0", "PASSED, and must not"),
    ("raise OSError('no such luck')", "3.0", "OSError: no such luck"),
])  # fmt: skip
def test_what_is_not_as_it_must_be_gives_one(folder, capsys, body, wrong, word):
    folder.write("bad", body, wrong)
    folder.write("good")
    assert folder.go() == 1
    assert word in capsys.readouterr().out and word in folder.page() and "1 of 2 claims" in folder.page()


def test_results_are_kept_until_something_changes(folder, capsys):
    folder.write("one")
    folder.go()
    assert folder.go("--resume") == 0 and folder.ran() == ["1.0 1"]
    assert "kept from an earlier run" in capsys.readouterr().err
    folder.go("--seeds", "1,2")
    assert folder.ran() == ["1.0 1", "1.0 2"]
    folder.go("--full")
    assert folder.ran()[2:] == ["1.125 1", "1.125 2", "1.125 3"]
    assert folder.page().count('data-label="Seed">3<') == 3
    folder.write("one", "x = 1")
    folder.go()
    assert folder.ran()[5:] == ["1.0 1"]
    folder.go("--fresh")
    assert folder.ran()[5:] == ["1.0 1", "1.0 1"]


def test_a_run_that_was_stopped_goes_on(folder, capsys):
    folder.write("aa")
    folder.write("bb", "raise KeyboardInterrupt")
    assert folder.go() == 130
    assert "1 runs are missing" in folder.page() and folder.ran() == ["1.0 1", "1.0 1"]
    folder.write("bb")
    assert folder.go() == 0 and folder.ran() == ["1.0 1", "1.0 1", "1.0 1"]


def test_an_error_is_not_kept(folder):
    folder.write("one", "raise OSError('once')")
    folder.go()
    assert folder.go() == 1 and len(folder.ran()) == 2


def test_processes_give_the_same(folder):
    folder.write("one")
    folder.write("two")
    folder.go()
    alone = json.loads((folder.out / "report.json").read_text())
    assert folder.go("--fresh", jobs=2) == 0 and len(folder.ran()) == 4
    together = json.loads((folder.out / "report.json").read_text())
    for name in alone:
        assert alone[name][0]["checks"] == together[name][0]["checks"]


@pytest.mark.parametrize("words", [
    ["nobody"], ["--seeds", "x"], ["--seeds", "1,1"], ["--seeds=-1"], ["--quick", "--full"], ["--fresh", "--resume"],
])  # fmt: skip
def test_bad_words_give_two(folder, capsys, words):
    folder.write("one")
    with pytest.raises(SystemExit) as caught:
        folder.go(*words)
    assert caught.value.code == 2 and capsys.readouterr().err and not folder.out.exists()


def test_names_choose_and_list_tells(folder, capsys):
    folder.write("one")
    folder.write("two")
    assert folder.go("--list") == 0 and "a statement of two" in capsys.readouterr().out and folder.ran() == []
    assert folder.go("two") == 0 and len(folder.ran()) == 1 and 'id="one"' not in folder.page()


# --- drawing ----------------------------------------------------------------------------------------------------------


def test_figures_take_the_colours_of_the_page_and_keep_their_text(folder, monkeypatch):
    monkeypatch.setattr(_figures, "drawings", DRAWINGS)
    folder.write("one")
    folder.go()
    (file,) = (folder.out / "results").glob("*.json")
    wide, narrow = json.loads(file.read_text())["figures"].values()
    for svg in (wide, narrow):
        shown = _figures.themed(svg, "a title")
        assert "var(--c0)" in shown and "var(--ink)" in shown and "#0072b2" not in shown.lower()
        assert "0.12345" in shown and "<title>a title</title>" in shown and shown.startswith('<svg role="img"')

    def box(svg):
        return [float(x) for x in svg.partition('viewBox="')[2].partition('"')[0].split()[2:]]

    (w, h), (v, g) = box(wide), box(narrow)
    assert w > 2 * h and g > 1.3 * v


@pytest.mark.parametrize("value, text", [
    (1.25, "1.25"), (-0.5, "−0.5"), (2.5e-13, "2.5·10<sup>−13</sup>"), (3e12, "3·10<sup>12</sup>"),
    (-1e-5, "−1·10<sup>−5</sup>"),
])  # fmt: skip
def test_numbers_are_written_as_in_print(value, text):
    assert _report.number(value) == text
