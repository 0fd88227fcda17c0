"""Data to descend on: real ones, a teacher's, and laws of the data from which SGD draws fresh samples at each step.

Offers `digits` and `diabetes` (scikit-learn), `mnist` from files of your own, `teacher_student`, and `GaussianTeacher`,
a law that `SGD` takes in place of X and Y. Nothing here opens a connection; scikit-learn is imported only when asked.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgdsde.datasets.arrays import Data as Data
    from sgdsde.datasets.gaussian_teacher import GaussianTeacher as GaussianTeacher
    from sgdsde.datasets.idx import mnist as mnist
    from sgdsde.datasets.idx import read_idx as read_idx
    from sgdsde.datasets.teacher import TeacherStudent as TeacherStudent
    from sgdsde.datasets.teacher import teacher_student as teacher_student
    from sgdsde.datasets.with_sklearn import diabetes as diabetes
    from sgdsde.datasets.with_sklearn import digits as digits

_NAMES = {
    "Data": "arrays",
    "GaussianTeacher": "gaussian_teacher",
    "TeacherStudent": "teacher",
    "diabetes": "with_sklearn",
    "digits": "with_sklearn",
    "mnist": "idx",
    "read_idx": "idx",
    "teacher_student": "teacher",
}

__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'sgdsde.datasets' has no attribute {name!r}")
    value = getattr(import_module(f"sgdsde.datasets.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
