"""A pass of numba's compiler: `return [a, b]` and `return np.array([a, b])` become `return (a, b)`.

A list or an array is memory asked for at every evaluation, about 30 ns; a tuple stays in registers and lets the loop
over paths vectorise, about 1 ns. The values are the same, since the caller takes single entries as floats. Only a
list that is written in the `return` itself, and used nowhere else, is changed; and only when this is so for every
`return`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numba.core import ir
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import get_definition, guard
from numba.core.untyped_passes import ReconstructSSA

__all__ = ["TupleReturns"]


@register_pass(mutates_CFG=False, analysis_only=False)
class _ReturnTuples(FunctionPass):
    _name = "sgdsde_return_tuples"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        code = state.func_ir
        uses = Counter(
            variable.name
            for block in code.blocks.values()
            for statement in block.body
            if not isinstance(statement, ir.Del)
            for variable in statement.list_vars()
        )
        for block in code.blocks.values():  # an assignment lists its own target, which is not a use
            uses.subtract(s.target.name for s in block.body if isinstance(s, ir.Assign))
        returns = [block.terminator.value for block in code.blocks.values() if isinstance(block.terminator, ir.Return)]
        changes: dict[int, Any] = {}
        if not all(_plan(code, value, uses, changes) for value in returns):
            return False
        for block in code.blocks.values():
            for statement in block.body:
                if isinstance(statement, ir.Assign) and id(statement.value) in changes:
                    new = changes[id(statement.value)]
                    code._definitions[statement.target.name] = [new]
                    statement.value = new
        return bool(changes)


def _plan(code: Any, variable: Any, uses: Counter, changes: dict[int, Any]) -> bool:
    """Note in `changes` how to make a tuple of `variable`; False where it is not a list written on the spot."""
    value = guard(get_definition, code, variable.name, lhs_only=False)
    if value is None or uses[variable.name] != 1:
        return False
    if isinstance(value, ir.Expr) and value.op == "cast":
        return _plan(code, value.value, uses, changes)
    if isinstance(value, ir.Expr) and value.op == "call" and _makes_array(code, value):
        if not _plan(code, value.args[0], uses, changes):
            return False
        changes[id(value)] = value.args[0]
        return True
    if isinstance(value, ir.Expr) and value.op in ("build_list", "build_tuple") and value.items:
        if value.op == "build_list":
            changes[id(value)] = ir.Expr.build_tuple(items=value.items, loc=value.loc)
        for item in value.items:  # rows of a matrix
            _plan(code, item, uses, changes)
        return True
    return False


def _makes_array(code: Any, call: Any) -> bool:
    """np.array(x) or np.array(x, dtype=float), by whatever names."""
    if len(call.args) != 1 or call.vararg is not None:
        return False
    if guard(code.infer_constant, call.func) not in (np.array, np.asarray):
        return False
    kinds = [guard(code.infer_constant, value) for name, value in call.kws if name == "dtype"]
    return len(kinds) == len(call.kws) and all(kind in (float, np.float64) for kind in kinds)


class TupleReturns(CompilerBase):
    """numba's default pipeline with the pass above, for `numba.njit(pipeline_class=TupleReturns)`."""

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(_ReturnTuples, ReconstructSSA)
        pipeline.finalize()
        return [pipeline]
