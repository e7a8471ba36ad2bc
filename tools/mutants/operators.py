"""The mistakes: a bound that is off by one, a condition the wrong way round, a statement that is missing.

A mutant is named by its module, function, what stood there and what stands there instead, so that its name outlives
changes elsewhere in the file. Equal ones in one function are numbered.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

COMPARED: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
CALCULATED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
#: Methods whose calls only write for people.
WORDS: Final = ("note", "warn")
#: The error of a failed assertion.
ASSERTIONS: Final = ("AssertionError", "InvariantViolation")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted mistake: `parent.field`, or its item at `index`, becomes `node`. `line` is that of its statement."""

    module: str
    function: str
    change: str
    line: int
    first_line: int  # of the function, its decorators included, as its code object has it
    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST

    @property
    def name(self) -> str:
        return f"{self.module} {self.function}: {self.change}"

    def rank(self, seed: int) -> bytes:
        """The place of a mutant in the drawing of `seed`, whatever other mutants there are."""
        return sha256(f"{seed} {self.name}".encode()).digest()

    def plant(self) -> None:
        """Plant the mistake in its tree."""
        if self.index is None:
            setattr(self.parent, self.field, self.node)
        else:
            getattr(self.parent, self.field)[self.index] = self.node


def mutants_of(module: str, tree: ast.Module) -> Iterator[Mutant]:
    """Mutants of a module, in the order of its text."""
    seen: Counter[str] = Counter()
    for function, name in functions_of(tree, ""):
        first_line = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
        for parent, field, index, node, line in _places(function):
            for other in _mistakes(node):
                change = f"{_text(node)} -> {_text(other)}"
                seen[name + change] += 1
                change += f" #{seen[name + change]}" if seen[name + change] > 1 else ""
                ast.fix_missing_locations(ast.copy_location(other, node))
                yield Mutant(module, name, change, line, first_line, parent, field, index, other)


def functions_of(node: ast.AST, prefix: str) -> Iterator[tuple[Function, str]]:
    """Functions and methods with their qualified names; those inside others belong to them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield child, prefix + child.name
        elif isinstance(child, ast.ClassDef):
            yield from functions_of(child, f"{prefix}{child.name}.")


Place = tuple[ast.AST, str, int | None, ast.AST, int]


def _places(function: Function) -> Iterator[Place]:
    for index, statement in enumerate(function.body):
        yield from _below(function, "body", index, statement, statement.lineno)


def _below(parent: ast.AST, field: str, index: int | None, node: ast.AST, line: int) -> Iterator[Place]:
    if _is_left_alone(node):
        return
    line = node.lineno if isinstance(node, ast.stmt) else line
    yield parent, field, index, node, line
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "decorator_list", "returns", "args"} and not isinstance(node, ast.Call):
            continue
        if isinstance(value, ast.AST):
            yield from _below(node, name, None, value, line)
        elif isinstance(value, list):
            for number, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield from _below(node, name, number, item, line)


def _is_left_alone(node: ast.AST) -> bool:
    """Whether a node is left alone: assertions, docstrings, and text for people."""
    if isinstance(node, ast.Assert | ast.JoinedStr):
        return True
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
        return node.exc.func.id in ASSERTIONS
    if not isinstance(node, ast.Expr):
        return False
    call = node.value
    is_word = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in WORDS
    return is_word or isinstance(call, ast.Constant)


def _mistakes(node: ast.AST) -> Iterator[ast.AST]:
    yield from _of_statement(node) if isinstance(node, ast.stmt) else _of_expression(node)


def _of_expression(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left, ops, comparators):
            for number, op in enumerate(ops):
                for other in COMPARED[type(op)]:
                    yield ast.Compare(left, [*ops[:number], other(), *ops[number + 1 :]], comparators)
        case ast.BinOp(left, op, right) if type(op) in CALCULATED and not _is_type(node):
            yield ast.BinOp(left, CALCULATED[type(op)](), right)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() as value):
            yield ast.Constant(value + 1)


def _of_statement(node: ast.stmt) -> Iterator[ast.stmt]:
    match node:
        case ast.If(test, body, orelse) if isinstance(test, ast.Name | ast.Attribute | ast.Call):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            yield ast.Pass()
        case ast.Assign(targets) if not all(isinstance(target, ast.Name | ast.Tuple) for target in targets):
            yield ast.Pass()


def _is_type(node: ast.BinOp) -> bool:
    """Whether a node is a union of types, as `isinstance` takes it."""
    return isinstance(node.op, ast.BitOr) and isinstance(node.right, ast.Name) and node.right.id[:1].isupper()


def _text(node: ast.AST) -> str:
    """The first line of a node's source."""
    return ast.unparse(node).partition("\n")[0]
