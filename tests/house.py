"""What the house measures: lines, files and habits of the package that a test keeps within bounds.

Run it with `python tests/house.py`, or with the folder of another version of the package as its argument. Each figure
has one rule, and all of them read the source only.

- Code lines have something on them that is neither a comment nor a docstring.
- An access to a private attribute is `x._name`, where `x` is not `self`, `cls`, `super()`, or, within the body of a
  class, that class by its name. Names with two underscores in front are not counted, nor are the public methods of
  named tuples, which begin with one (`_replace`, `_asdict`, `_fields`, `_make`). Private names of modules, such as
  `os._exit`, count like those of objects. Accesses that assign or delete are writes.
- `Any` counts by the lines that hold the word, but for those that import it.
- Modules are in a cycle if each can be reached from the other along imports, wherever these stand: within functions,
  and under TYPE_CHECKING, too. `from .a import b` leads to the module `a.b` if there is one, else to `a`.
- The lines of a class or function are those from its first to its last, without its docstring.
- Parameters count without `self` and `cls`. Kernels may have more than ten, and so may what names all that a user may
  set: constructors (`__init__`, and the functions of `simulate` that make a crowd), readers (`read_...`, `scan_...`,
  `from_...`, and the functions of `api.py`), and commands.
- A register is a literal with a name in capitals, in a module `register.py` or an `__init__.py`.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "consilience"
LONGEST_CLASS, LONGEST_FUNCTION, MOST_PARAMETERS = 350, 60, 10
EMPTY = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
OF_NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make", "_field_defaults"}
READERS = re.compile(r"(read|scan|from)_")
# Where commands are declared, each with the module and the function that does it.
COMMANDS = Path(__file__).parents[1] / "src" / "consilience" / "cli" / "commands.py"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class House:
    """All figures of one version of the package."""

    lines: Counter[str] = field(default_factory=Counter)  # by room
    files: Counter[str] = field(default_factory=Counter)
    private: list[str] = field(default_factory=list)  # where private attributes are read or written
    writes: list[str] = field(default_factory=list)
    any: Counter[str] = field(default_factory=Counter)
    cycles: list[list[str]] = field(default_factory=list)
    long_classes: list[str] = field(default_factory=list)
    long_functions: list[str] = field(default_factory=list)
    many_parameters: list[str] = field(default_factory=list)
    registers: dict[str, int] = field(default_factory=dict)

    def describe(self) -> Iterator[str]:
        """Yield the lines that are printed."""
        yield f"code lines         {self.lines.total():,}"
        yield f"files              {self.files.total()}"
        for room, n_lines in self.lines.most_common():
            yield f"    {room:<15}{n_lines:>6,} lines {self.files[room]:>4} files {self.any[room]:>4} Any"
        yield f"private attributes {len(self.private)}, {len(self.writes)} of them written"
        yield f"lines with Any     {self.any.total()}"
        yield f"import cycles      {len(self.cycles)}"
        yield from (f"    {len(cycle)} modules: {', '.join(cycle)}" for cycle in self.cycles)
        for what, found in (
            (f"classes above {LONGEST_CLASS} lines", self.long_classes),
            (f"functions above {LONGEST_FUNCTION} lines", self.long_functions),
            (f"functions with more than {MOST_PARAMETERS} parameters", self.many_parameters),
        ):
            yield f"{what}: {len(found)}"
            yield from (f"    {each}" for each in found)
        yield "registers"
        yield from (f"    {name:<45}{number:>4}" for name, number in self.registers.items())


def measure(package: Path = PACKAGE) -> House:
    """Return all figures of a package."""
    house, imports = House(), dict[str, set[str]]()
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))}
    names = {path: name_module(path, package) for path in trees}
    for path, tree in trees.items():
        text, at = path.read_text(encoding="utf-8"), path.relative_to(package)
        room = at.parts[0]
        house.lines[room] += count_code_lines(text, tree)
        house.files[room] += 1
        house.any[room] += sum("import" not in line for line in text.splitlines() if re.search(r"\bAny\b", line))
        for node in find_private(tree):
            place = f"{at}:{node.lineno} {ast.unparse(node)}"
            house.private.append(place)
            if not isinstance(node.ctx, ast.Load):
                house.writes.append(place)
        imports[names[path]] = find_imports(tree, names[path], path.name == "__init__.py", set(names.values()))
        measure_definitions(house, tree, at)
        house.registers |= find_registers(tree, at)
    house.cycles = find_cycles(imports)
    return house


def name_module(path: Path, package: Path) -> str:
    """Return the dotted name of a module."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def docstring_of(node: ast.AST) -> ast.Expr | None:
    """Return the docstring of a module, class or function."""
    if isinstance(node, (ast.Module, ast.ClassDef, Function)) and ast.get_docstring(node, clean=False) is not None:
        first = node.body[0]
        return first if isinstance(first, ast.Expr) else None
    return None


def count_code_lines(text: str, tree: ast.Module) -> int:
    """Return how many lines are neither empty nor comments nor docstrings."""
    lines = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in EMPTY:
            lines.update(range(token.start[0], token.end[0] + 1))
    for docstring in filter(None, map(docstring_of, ast.walk(tree))):
        lines -= lines_of(docstring)
    return len(lines)


def lines_of(node: ast.stmt) -> set[int]:
    """Return the numbers of the lines of a statement."""
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def find_private(node: ast.AST, within: frozenset[str] = frozenset()) -> Iterator[ast.Attribute]:
    """Yield accesses to private attributes of other objects; `within` are the classes around the node."""
    if isinstance(node, ast.ClassDef):
        within |= {node.name}
    if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
        owner = node.value
        own = isinstance(owner, ast.Name) and owner.id in {"self", "cls", *within}
        parent = isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super"
        if not own and not parent and node.attr not in OF_NAMED_TUPLES:
            yield node
    for child in ast.iter_child_nodes(node):
        yield from find_private(child, within)


def find_imports(tree: ast.Module, name: str, is_package: bool, modules: set[str]) -> set[str]:
    """Return the modules of the package that a module imports, in whatever place."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = name.split(".")[: len(name.split(".")) - node.level + is_package] if node.level else []
            source = ".".join(above + (node.module.split(".") if node.module else []))
            for alias in node.names:
                below = f"{source}.{alias.name}"
                found.add(below if below in modules else source)
    return (found & modules) - {name}


def find_cycles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Return the sets of modules that import each other, the largest first: strongly connected components (Tarjan)."""
    number, lowest, stack, cycles = dict[str, int](), dict[str, int](), list[str](), list[list[str]]()

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in sorted(imports[module]):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            start = stack.index(module)
            if len(stack) - start > 1:
                cycles.append(sorted(stack[start:]))
            del stack[start:]

    for module in imports:
        if module not in number:
            visit(module)
    return sorted(cycles, key=len, reverse=True)


def measure_definitions(house: House, tree: ast.Module, at: Path) -> None:
    """Note classes and functions that are too long, and functions with too many parameters."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.ClassDef, Function)):
            continue
        docstring = docstring_of(node)
        n_lines = len(lines_of(node) - (lines_of(docstring) if docstring else set()))
        if isinstance(node, ast.ClassDef):
            if n_lines > LONGEST_CLASS:
                house.long_classes.append(f"{at}:{node.lineno} {node.name} {n_lines}")
            continue
        if n_lines > LONGEST_FUNCTION:
            house.long_functions.append(f"{at}:{node.lineno} {node.name} {n_lines}")
        n_parameters = count_parameters(node)
        if n_parameters > MOST_PARAMETERS and not may_take_many(node, at):
            house.many_parameters.append(f"{at}:{node.lineno} {node.name} {n_parameters}")


def count_parameters(node: Function) -> int:
    """Return how many parameters a function has, but for the object or class itself."""
    parameters = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(parameters) - (parameters[:1] in (["self"], ["cls"]))


def may_take_many(node: Function, at: Path) -> bool:
    """Tell whether a function names all that a user may set, or is a kernel."""
    is_command = at.parts[0] == "cli" and f'"{at.stem}:{node.name}"' in COMMANDS.read_text(encoding="utf-8")
    is_reader = bool(READERS.match(node.name)) or at.parts == ("api.py",)
    makes_something = node.name == "__init__" or (at.parts[0] == "simulate" and not node.name.startswith("_"))
    return at.parts[0] == "kernels" or makes_something or is_command or is_reader


def find_registers(tree: ast.Module, at: Path) -> dict[str, int]:
    """Return how many entries each register of a module has."""
    found = defaultdict[str, int](int)
    if at.name not in {"register.py", "__init__.py"}:
        return found
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        entries = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", None)
        for target in targets:
            if isinstance(target, ast.Name) and target.id.isupper() and entries is not None:
                found[f"{at} {target.id}"] = len(entries)
    return found


if __name__ == "__main__":
    print("\n".join(measure(*map(Path, sys.argv[1:])).describe()))
