# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a program as text, its form. Two programs with the same form do the same from here on.

A program that waits for an answer is a stack of Python frames. What it does next depends on the instruction that each
frame has reached, and on the variables that it still reads. Two programs that have seen different answers, and no
longer use them, have the same form. This keeps the number of states of the model small.

Python does not show the values of an expression that is only partly evaluated, or what is left of a loop. Constants and
the values of variables are known from the code. If there are other values, two programs are the same only if they have
seen the same answers.
As this may be wrong, :class:`model.programs.Place` follows two histories for each form, and checks that they do the
same.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

_PLAIN = (str, int, float, bool, type(None), bytes)
_THREADS = ("concurrent.", "threading", "queue", "_queue", "_thread")
_constants: dict[int, tuple[Any, str]] = {}

# What is known of a value on the stack of a frame. A value that was loaded from a variable has its name.
Stack = tuple[str, ...]
SAME, WITH, HIDDEN = "=", "with", "?"
# Instructions that load a value that is the same in each run of a program: methods, functions, modules, constants.
_SAME_EACH_TIME = ("LOAD_GLOBAL", "LOAD_CONST", "LOAD_ASSERTION_ERROR", "PUSH_NULL")
_LOADS_VARIABLE = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE")
_STORES_VARIABLE = ("STORE_FAST", "STORE_DEREF", "DELETE_FAST", "DELETE_DEREF")
# Instructions that leave no new value on the stack.
_ONLY_TAKES = (
    *("POP", "STORE", "DELETE", "JUMP", "RETURN", "RAISE", "RERAISE", "LIST_", "SET_", "DICT_", "MAP_"),
    *("NOP", "RESUME", "PRECALL", "KW_NAMES", "MAKE_CELL", "COPY_FREE", "EXTENDED", "CACHE"),
)


def constant(value: Any, name: str) -> Any:
    """Register an object that always exists and never changes: its name stands for it in a form."""
    _constants[id(value)] = (value, name)
    return value


class Form:
    """The form of frames or values, as text.

    Attributes:
        incomplete: Whether there are values that Python does not show.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []
        self.incomplete = False

    def __str__(self) -> str:
        return "".join(self._parts)

    def of_frames(self, innermost: FrameType, until: FrameType) -> None:
        """Add the frames from the innermost one to the outermost one before ``until``."""
        frame: FrameType | None = innermost
        while frame is not None and frame is not until:
            self._of_frame(frame)
            frame = frame.f_back

    def of_generator(self, generator: Any) -> None:
        """Add a generator, and the generators that it waits for."""
        while isinstance(generator, GeneratorType) and generator.gi_frame is not None:
            self._of_frame(generator.gi_frame)
            generator = generator.gi_yieldfrom

    def _of_frame(self, frame: FrameType) -> None:
        point = _point(frame.f_code, frame.f_lasti)
        self.incomplete |= point.mid_expression
        self._parts.append(f"\n{frame.f_code.co_qualname}@{point.offset}")
        for name, value in frame.f_locals.items():
            if name in point.live:
                self._parts.append(f" {name}=")
                self.of(value)

    def of(self, value: Any) -> None:
        kind = type(value)
        if kind in _PLAIN:
            self._parts.append(repr(value))
        elif id(value) in _constants:
            self._parts.append(_constants[id(value)][1])
        elif id(value) in self._seen:
            self._parts.append(f"<{self._seen[id(value)]}>")
        elif isinstance(value, ModuleType | type):
            self._parts.append(value.__name__)
        else:
            # Keep the value: some attributes create a new object on each access, and the id of a freed one is reused.
            self._seen[id(value)] = len(self._seen)
            self._kept.append(value)
            self._parts.append(kind.__name__)
            for part in _parts(value):
                self._parts.append(",")
                self.of(part)
            self._parts.append(";")


def _parts(value: Any) -> Iterator[Any]:
    """The values that a value consists of."""
    if isinstance(value, dict | Mapping):
        yield from (each for pair in value.items() for each in pair)
    elif isinstance(value, set | frozenset):
        yield from sorted(value, key=repr)
    elif isinstance(value, list | tuple):
        yield from value
    elif type(value).__module__.startswith(_THREADS):
        # The model uses no threads, and their names differ each time.
        return
    elif isinstance(value, MethodType):
        yield from (value.__func__.__qualname__, value.__self__)
    elif isinstance(value, FunctionType):
        yield value.__qualname__
        for cell in value.__closure__ or ():
            yield from _of_cell(cell)
    elif isinstance(value, GeneratorType):
        form = Form()
        form.of_generator(value)
        yield str(form)
    elif hasattr(value, "form_parts"):
        yield value.form_parts
    elif hasattr(value, "__next__") or type(value).__module__ in ("datetime", "pathlib", "re"):
        yield value.__reduce__()[1:]
    elif isinstance(value, BaseException):
        yield from (value.args, value.__dict__)
    elif hasattr(value, "__dict__"):
        yield value.__dict__
    elif hasattr(value, "__slots__"):
        yield from (getattr(value, name, None) for name in value.__slots__)


def _of_cell(cell: Any) -> Iterator[Any]:
    try:
        yield cell.cell_contents
    except ValueError:
        return


@dataclass(frozen=True)
class _Point:
    """An instruction.

    Attributes:
        live: The variables that may still be read after it.
        mid_expression: Whether an expression is partly evaluated, a loop is not at its end, or an exception is being
            handled. The values on the stack are not visible then.
        prepares: Whether the next instruction completes it.
    """

    offset: int
    live: frozenset[str]
    mid_expression: bool
    prepares: bool


@lru_cache(None)
def _point(code: CodeType, offset: int) -> _Point:
    """The last instruction that starts at this offset or before it."""
    points = _points(code)
    number = max(number for number, point in enumerate(points) if point.offset <= offset)
    # In Python 3.11, a call is two instructions, and a waiting frame may show either of them.
    return points[number + points[number].prepares]


@lru_cache(None)
def _points(code: CodeType) -> list[_Point]:
    found = list(dis.get_instructions(code))
    index = {item.offset: number for number, item in enumerate(found)}
    handlers: list[list[tuple[int, int, int]]] = [[] for _item in found]
    for entry in dis.Bytecode(code).exception_entries:
        for item in found:
            if entry.start <= item.offset <= entry.end:
                # The handler gets the exception and, in some cases, the place where it was raised.
                handlers[index[item.offset]].append((index[entry.target], entry.depth, 1 + entry.lasti))
    following = [_following(number, item, index) for number, item in enumerate(found)]
    live = _live(code, found, following, handlers)
    stacks = _stacks(found, following, handlers)
    return [_point_of(item, live[number], stacks.get(number, ())) for number, item in enumerate(found)]


def _point_of(item: dis.Instruction, live: frozenset[str], stack: Stack) -> _Point:
    left = stack[: -_taken(item)]
    loaded = live.union(left) - {SAME, WITH, HIDDEN}
    return _Point(item.offset, loaded, HIDDEN in left, item.opname == "PRECALL")


def _following(number: int, item: dis.Instruction, index: Mapping[int, int]) -> dict[int, bool]:
    """The instructions that may follow this one if there is no exception, and whether it jumps to each."""
    jumps = item.opcode in dis.hasjrel or item.opcode in dis.hasjabs
    found = {index[item.argval]: True} if jumps else {}
    if not item.opname.startswith(("RETURN_V", "RAISE", "RERAISE", "JUMP_")):
        found[number + 1] = False
    return found


def _live(code: CodeType, found: list[Any], following: list[Any], handlers: list[Any]) -> list[frozenset[str]]:
    """The variables that may still be read after each instruction: the usual liveness analysis of compilers."""
    always = frozenset((*code.co_cellvars, *code.co_freevars))
    after, before = [always] * len(found), [always] * len(found)
    changed = True
    while changed:
        changed = False
        for number in range(len(found) - 1, -1, -1):
            item = found[number]
            caught = always.union(*(before[target] for target, _depth, _more in handlers[number]))
            out = caught.union(*(before[each] for each in following[number]))
            names = item.argval if isinstance(item.argval, tuple) else (item.argval,)
            into = out.difference(names) if item.opname in ("STORE_FAST", "DELETE_FAST") else out
            into = into.union(names) if "LOAD_FAST" in item.opname else into
            # If an exception occurs at a store, the variable keeps its value.
            into |= caught
            if (out, into) != (after[number], before[number]):
                after[number], before[number], changed = out, into, True
    return after


def _stacks(found: list[Any], following: list[Any], handlers: list[Any]) -> dict[int, Stack]:
    """The values on the stack before each instruction, as far as they are known."""
    stacks: dict[int, Stack] = {0: ()}
    new = [0]
    while new:
        number = new.pop()
        item, stack = found[number], stacks[number]
        then = {each: _after(item, stack, jumps=jumps) for each, jumps in following[number].items()}
        then |= {
            target: (*stack[:depth], *[HIDDEN] * more)
            for target, depth, more in handlers[number]
            if depth <= len(stack)
        }
        for each, values in then.items():
            known = stacks.get(each, values)
            joined = tuple(one if one == other else HIDDEN for one, other in zip(known, values, strict=True))
            if stacks.get(each) != joined:
                stacks[each] = joined
                new.append(each)
    return stacks


def _after(item: dis.Instruction, stack: Stack, *, jumps: bool) -> Stack:
    """The values on the stack after an instruction."""
    name, arg = item.opname, item.arg or 0
    if name.startswith(_STORES_VARIABLE):
        # A value that was loaded before is no longer that of the variable.
        stack = tuple(HIDDEN if value in _names(item) else value for value in stack)
    effect = dis.stack_effect(item.opcode, item.arg if item.opcode >= dis.HAVE_ARGUMENT else None, jump=jumps)
    if name.startswith(_LOADS_VARIABLE):
        return (*stack, *_names(item))
    if name in _SAME_EACH_TIME:
        return (*stack, *[SAME] * effect)
    if name in ("LOAD_ATTR", "LOAD_METHOD") and (stack[-1] == SAME or effect):
        # A part of a module, or a method and its object.
        return (*stack[:-1], *[SAME] * effect, stack[-1])
    if name == "BEFORE_WITH":
        return (*stack[:-1], WITH, HIDDEN)
    if name == "COPY":
        return (*stack, stack[-arg])
    if name == "SWAP":
        return (*stack[:-arg], stack[-1], *stack[-arg + 1 : -1], stack[-arg])
    if name.startswith(_ONLY_TAKES):
        return stack[: len(stack) + effect]
    if name == "FOR_ITER":
        return stack[:-1] if jumps else (*stack, HIDDEN)
    if name == "RETURN_GENERATOR":
        # What the first send() gives, which the next instruction takes.
        return (*stack, SAME)
    if name.startswith("UNPACK"):
        return (*stack[:-1], *[HIDDEN] * (effect + 1))
    # Others replace what they take by one value, or add values.
    return (*stack, *[HIDDEN] * effect) if effect > 0 else (*stack[: len(stack) + effect - 1], HIDDEN)


def _names(item: dis.Instruction) -> tuple[str, ...]:
    return item.argval if isinstance(item.argval, tuple) else (item.argval,)


def _taken(item: dis.Instruction) -> int:
    """How many values an instruction takes from the stack, if it calls."""
    arg = item.arg or 0
    return {
        "CALL": 2 if "PRECALL" in dis.opmap else arg + 2,
        "CALL_KW": arg + 3,
        "CALL_FUNCTION_EX": 3 + (arg & 1),
    }.get(item.opname, 1)
