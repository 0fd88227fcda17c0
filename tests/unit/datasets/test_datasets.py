"""Data sets: what they hold, what is said of files that are not what they should be, and the law of a teacher."""

import builtins
import gzip
import pickle
import struct
import sys

import numpy as np
import pytest

import sgdsde as sg
from sgdsde import datasets
from sgdsde._errors import ArgumentError, ShapeError


def idx(array, kind=0x08):
    head = bytes([0, 0, kind, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype({0x08: ">u1", 0x0B: ">i2", 0x0D: ">f4"}[kind]).tobytes()


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (5, 4, 3)), np.array([3, 0, 9, 9, 1])
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(images))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    (tmp_path / "t10k-images.idx3-ubyte.gz").write_bytes(gzip.compress(idx(images[:2])))
    (tmp_path / "t10k-labels.idx1-ubyte").write_bytes(idx(labels[:2]))
    return tmp_path, images, labels


def test_digits_and_diabetes_are_those_of_scikit_learn():
    from sklearn.datasets import load_diabetes, load_digits

    X, Y = datasets.digits()
    raw = load_digits()
    assert (
        np.array_equal(16 * X, raw.data) and np.array_equal(Y.argmax(axis=1), raw.target) and (Y.sum(axis=1) == 1).all()
    )
    assert np.array_equal(datasets.digits(one_hot=False).Y, raw.target)
    X, Y = datasets.diabetes()
    assert (
        np.abs(X.mean(axis=0)).max() < 1e-13 and X.var(axis=0) == pytest.approx(1.0) and Y.var() == pytest.approx(1.0)
    )
    raw, target = load_diabetes(return_X_y=True)
    assert pytest.approx(raw * np.sqrt(442), abs=1e-8) == X
    assert np.array_equal(datasets.diabetes(standardize=False).Y, target)
    for data in (datasets.digits(), datasets.diabetes()):
        assert all(a.dtype == np.float64 and a.flags.c_contiguous for a in data)
    sg.SGD(sg.models.LinearRegression(10), X, Y, learning_rate=0.1)


def test_without_scikit_learn_the_error_says_which_extra(monkeypatch):
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.partition(".")[0] == "sklearn":
            raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    for name in [n for n in sys.modules if n.partition(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    for load in (datasets.digits, datasets.diabetes):
        with pytest.raises(ModuleNotFoundError, match=r"scikit-learn is not installed.*sgdsde\[demo\]"):
            load()


def test_mnist_from_files(folder):
    path, images, labels = folder
    X, Y = datasets.mnist(path)
    assert np.array_equal(X, images.reshape(5, 12) / 255.0) and np.array_equal(Y.argmax(axis=1), labels)
    assert X.dtype == Y.dtype == np.float64
    test = datasets.mnist(str(path), "test", one_hot=False)
    assert np.array_equal(test.X, X[:2]) and np.array_equal(test.Y, labels[:2])
    assert datasets.mnist(path, n_samples=2).X.shape == (2, 12)


@pytest.mark.parametrize("kind", [0x08, 0x0B, 0x0D])
def test_numbers_of_more_than_one_byte_are_read_in_their_order(tmp_path, kind):
    array = np.arange(6).reshape(2, 3) * (1 if kind == 0x08 else 300)
    (tmp_path / "f").write_bytes(idx(array, kind))
    found = datasets.read_idx(tmp_path / "f")
    assert np.array_equal(found, array) and found.dtype.isnative


def test_files_that_are_not_what_they_should_be(folder, tmp_path):
    path, images, labels = folder
    with pytest.raises(ArgumentError, match="path must be a folder .* which is not there"):
        datasets.mnist(path / "nowhere")
    with pytest.raises(ArgumentError, match="which is a file"):
        datasets.mnist(path / "train-images-idx3-ubyte")
    with pytest.raises(ArgumentError, match="path must be a path, got 3"):
        datasets.mnist(3)
    with pytest.raises(ArgumentError, match="part must be one of 'train', 'test'"):
        datasets.mnist(path, "valid")
    with pytest.raises(ArgumentError, match="n_samples must be between 1 and 5, got 6"):
        datasets.mnist(path, n_samples=6)
    bad = path / "bad"
    with pytest.raises(ArgumentError, match="must be a file that can be read"):
        datasets.read_idx(bad)
    whole = idx(images)
    for content, message in (
        (b"", "it begins nothing"),
        (b"\x89PNG", "it begins 89 50 4e 47"),
        (whole[:-1], r"must hold 76 bytes for the shape \(5, 4, 3\).*got 75: is it cut off"),
        (whole + b"\0", "got 77"),
        (whole[:9], "cut off"),
        (gzip.compress(whole)[:-9], "must be a file that can be read"),
        (gzip.compress(whole)[:30] + b"xxxx" + gzip.compress(whole)[34:], "must be a file that can be read"),
    ):
        bad.write_bytes(content)
        with pytest.raises(ArgumentError, match=message):
            datasets.read_idx(bad)
    (path / "train-labels-idx1-ubyte.gz").write_bytes(idx(labels[:4]))
    with pytest.raises(ArgumentError, match=r"as many labels \(N,\), got \(5, 4, 3\) and \(4,\)"):
        datasets.mnist(path)
    (path / "train-labels-idx1-ubyte.gz").write_bytes(idx(labels + 1))
    with pytest.raises(ArgumentError, match="labels must be in 0..9, got 1..10"):
        datasets.mnist(path)
    (path / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(ArgumentError, match="path must hold one of train-labels-idx1-ubyte, .*holds bad, t10k"):
        datasets.mnist(path)


def test_nothing_opens_a_connection(folder, monkeypatch):
    import socket

    import sklearn.datasets  # noqa: F401 - it reads the name when it is imported first

    monkeypatch.setattr(socket, "socket", None)
    datasets.mnist(folder[0])
    datasets.digits()


SIGMA_X, SIGMA_EPS = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.3]]), [0.5, 0.1]


def test_the_samples_of_a_teacher_have_its_moments():
    V = np.array([[1.0, -1.0, 0.0], [0.0, 2.0, 1.0]])
    X, Y, law = datasets.teacher_student(40_000, V, SIGMA_X, SIGMA_EPS, label_noise=0.3, rng=5)
    noise = Y - X @ V.T
    wanted = np.diag(SIGMA_EPS) + 0.09 * np.eye(2)
    assert pytest.approx(wanted) == law.Sigma_eps
    for a, b, target in ((X, X, SIGMA_X), (noise, noise, wanted), (X, noise, np.zeros((3, 2)))):
        found, sizes = a.T @ b / len(X), np.sqrt(np.outer((a**2).mean(0), (b**2).mean(0)) + target**2)
        assert np.abs(found - target).max() <= 5 * sizes.max() / np.sqrt(len(X))
    assert np.abs(X.mean(axis=0)).max() <= 5 * np.sqrt(2.0 / len(X))
    assert np.abs((X**4).mean(0) / 3 / np.diag(SIGMA_X) ** 2 - 1).max() < 5 * np.sqrt(96 / 9 / len(X))


def test_seeds_and_sizes():
    few, many = (datasets.teacher_student(n, (2, 3), SIGMA_X, 0.2, rng=3) for n in (300, 700))
    assert np.array_equal(few.X, many.X[:300]) and np.array_equal(few.Y, many.Y[:300]) and few.law == many.law
    other = datasets.teacher_student(300, (2, 3), SIGMA_X, 0.2, rng=4)
    assert not np.isclose(other.X, few.X).any() and not np.isclose(other.law.V, few.law.V).any()
    again = few.law.draw(300, 3)
    assert np.array_equal(again[0], few.X) and np.array_equal(again[1], few.Y)
    assert few.law != other.law and few.law != 3 and hash(few.law) == hash(many.law)
    copy = pickle.loads(pickle.dumps(few.law))
    assert copy == few.law and np.array_equal(copy.draw(2, 1)[1], few.law.draw(2, 1)[1])
    assert not np.isclose(sg.models.DeepLinear([3, 4, 2]).init(rng=3)[:3], few.X[0]).any()


def test_singular_covariances():
    law = datasets.GaussianTeacher(np.eye(3)[:2], np.ones((3, 3)), [0.0, 2.0])
    assert law.root_x.shape == (3, 1) and law.root_eps.shape == (2, 1)
    X, Y = law.draw(10, 0)
    assert (
        pytest.approx(X[:, :1] * np.ones(3)) == X
        and Y[:, 0] == pytest.approx(X[:, 0])
        and np.ptp(Y[:, 1] - X[:, 1]) > 1
    )
    clean = datasets.GaussianTeacher([[1.0]])
    assert clean.root_eps.shape == (1, 0) and np.array_equal(*clean.draw(5, 0))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"V": [1.0, 2.0]}, ShapeError, r"V must have shape \(d_y, d_x\)"),
        ({"V": np.zeros((0, 2))}, ShapeError, "V must have at least one row"),
        ({"V": (0, 2)}, ArgumentError, r"V\[0\] must be at least 1"),
        ({"V": [[np.nan, 1.0]]}, ArgumentError, "V must be finite"),
        ({"Sigma_x": np.eye(3)}, ShapeError, r"Sigma_x must have shape \(2, 2\) or \(2,\), or be a number"),
        ({"Sigma_x": [[1.0, 0.2], [0.1, 1.0]]}, ArgumentError, "Sigma_x must be symmetric"),
        ({"Sigma_x": [[1.0, 2.0], [2.0, 1.0]]}, ArgumentError, "Sigma_x must have no eigenvalue below zero, got -1"),
        ({"Sigma_eps": -0.1}, ArgumentError, "Sigma_eps must have no eigenvalue below zero"),
        ({"label_noise": -1.0}, ArgumentError, "label_noise must be at least 0"),
        ({"n_samples": 0}, ArgumentError, "n_samples must be at least 1"),
        ({"rng": 1.5}, ArgumentError, "rng must be"),
    ],
)
def test_arguments(change, error, message):
    with pytest.raises(error, match=message):
        datasets.teacher_student(**{"n_samples": 3, "V": [[1.0, 2.0]], **change})


def test_labels_that_are_no_bytes_are_refused(folder, tmp_path):
    path, images, labels = folder
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "train-images-idx3-ubyte").write_bytes(idx(images, 0x08))
    (tmp_path / "own" / "train-labels-idx1-ubyte").write_bytes(idx(labels + 0.5, 0x0D))
    with pytest.raises(ArgumentError, match=r"unsigned bytes \(type 08\), got uint8 and float32"):
        datasets.mnist(tmp_path / "own")


def test_covariances_too_large_to_be_squared_are_refused():
    with pytest.raises(ArgumentError, match="Sigma_x must have entries of a size that can be squared"):
        datasets.GaussianTeacher([[1.0, 2.0]], [[1e308, 1e308], [1e308, 1e308]])
    with pytest.raises(ArgumentError, match="label_noise must be of a size"):
        datasets.teacher_student(3, (1, 2), label_noise=1e200)


def test_more_data_than_there_is_memory():
    with pytest.raises(sg.TooLargeError, match=r"data of 10000000000000 samples takes .* use fewer samples"):
        datasets.teacher_student(10**13, (2, 3), rng=0)
