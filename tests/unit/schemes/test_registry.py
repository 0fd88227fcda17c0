"""The registry reads the folder, loads a page when it is asked for, and says why a method cannot take an equation."""

import subprocess
import sys
from dataclasses import replace

import pytest

from sgdsde._errors import ArgumentError
from sgdsde.schemes import NOISE_KINDS, Scheme, check, get_scheme, methods, table


def test_listing_the_names_loads_no_page():
    code = (
        "import sys, sgdsde.schemes as s; names = list(s.methods);"
        "assert 'heun' in s.methods and len(names) == len(s.methods);"
        "pages = [m for m in sys.modules if m.startswith('sgdsde.schemes.') and '._' not in m];"
        "assert pages == [], pages; assert 'numba' not in sys.modules;"
        "s.methods['heun']; assert 'sgdsde.schemes.heun' in sys.modules;"
        "assert 'sgdsde.schemes.milstein' not in sys.modules;"
        "print(*names)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    names = done.stdout.split()
    assert names == sorted(names) == list(methods)
    assert set(names) >= {"euler-maruyama", "heun", "milstein", "milstein-symmetric"}


@pytest.mark.parametrize("name", list(methods))
def test_a_page_states_its_traits(name):
    scheme = methods[name]
    page = sys.modules[f"sgdsde.schemes.{name.replace('-', '_')}"]
    assert scheme.name == name
    assert scheme.reference and scheme.summary and "Not for:" in page.__doc__ and "Y'" in page.__doc__
    assert set(scheme.strong) <= set(NOISE_KINDS) and set(scheme.weak) == set(scheme.strong)
    for noise in scheme.strong:
        for calculus in scheme.calculus:
            assert scheme.kernel(noise, calculus) is not None
            check(scheme, noise, calculus)


def test_names():
    assert get_scheme("heun") is methods["heun"] is get_scheme(methods["heun"])
    for name, hint in [("milstien", "did you mean 'milstein'?"), ("Milstein_Symmetric", "'milstein-symmetric'?")]:
        with pytest.raises(ArgumentError, match=r"method must be one of .*'euler-maruyama', 'heun'.*got") as error:
            get_scheme(name)
        assert str(error.value).endswith(hint)
    for name in ("zzz", None, 3):
        with pytest.raises(ArgumentError) as error:
            get_scheme(name)
        assert "did you mean" not in str(error.value)
    with pytest.raises(KeyError):
        methods["zzz"]


@pytest.mark.parametrize(
    "name, noise, calculus, words",
    [
        ("sriw1", "general", "ito", "general noise"),
        ("sra1", "scalar", "ito", "takes additive noise, this equation has scalar noise"),
        ("euler-maruyama", "scalar", "stratonovich", r"Itô equations.*Stratonovich.*to_ito\(sde\).*'heun'"),
        ("heun", "diagonal", "ito", r"Stratonovich equations.*Itô.*to_stratonovich\(sde\).*'euler-maruyama'"),
        ("heun", "general", "discrete", "discrete recursion"),
    ],
)
def test_refusals_say_why_and_what_instead(name, noise, calculus, words):
    with pytest.raises(ArgumentError, match=words):
        check(methods[name], noise, calculus)


def test_a_pointer_points_to_a_method_that_takes_it():
    with pytest.raises(ArgumentError) as error:
        check(methods["euler-maruyama"], "general", "stratonovich")
    for name in ("heun", "milstein", "milstein-symmetric"):
        assert f"'{name}'" in str(error.value)
    for name in ("euler-maruyama", "platen", "sra1", "sriw1"):  # another calculus, another kind
        assert f"or '{name}'" not in str(error.value) and f"use '{name}'" not in str(error.value)


@pytest.mark.parametrize("name", list(methods))
@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
def test_additive_noise_has_one_law_in_both_calculi(name, calculus):
    check(methods[name], "additive", calculus)
    assert methods[name].kernel("additive", calculus) is not None


def test_a_recursion_brings_its_own_step():
    own = Scheme("sgd", methods["euler-maruyama"].step, calculus=("discrete",), strong={}, weak={})
    check(own, "additive", "discrete")
    with pytest.raises(ArgumentError, match=r"discrete recursion.*Itô"):
        check(own, "additive", "ito")
    picky = replace(methods["heun"], name="picky", strong={"additive": 1.0})
    with pytest.raises(ArgumentError, match=r"picky.*takes additive noise.*use .*'heun'"):
        check(picky, "scalar", "stratonovich")


def test_the_table_has_a_row_for_each_method():
    rows = table()
    assert [row["name"] for row in rows] == list(methods)
    for row in rows:
        scheme = methods[row["name"]]
        assert row["strong"] == dict(scheme.strong) and row["ode_order"] == scheme.ode_order
        assert row["calculus"] in ("Itô", "Stratonovich", "Itô, Stratonovich")
    assert {row["name"]: row["strong"].get("general") for row in rows}["milstein"] == 1.0
    assert set({row["name"]: row["strong"] for row in rows}["sra1"]) == {"additive"}
