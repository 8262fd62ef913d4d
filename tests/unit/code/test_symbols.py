"""Symbols of source files: named and ended as their languages define them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import bethink.retrieval
from bethink.code.symbols import find_symbol, find_symbols, hash_code, knows_language
from rows import each_row

PACKAGE = Path(bethink.retrieval.__file__).parent


def definitions(body: Sequence[ast.stmt], owner: str = "") -> Iterator[tuple[str, int, int]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield f"{owner}{node.name}", node.lineno, node.end_lineno or 0
            yield from definitions(node.body, f"{owner}{node.name}.")


def test_python_is_read_as_its_parser_reads_it() -> None:
    """Every function and class of a package, with its lines."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        found = {(one.name, one.start + 1, one.end) for one in find_symbols(str(path), text)}
        assert set(definitions(ast.parse(text).body)) <= found, path


TS = """export class Cart<T> extends Base {
  async total(currency: string): Promise<number> {
    if (this.items.length) { return 1; }
    return "}".length;
  }
}
export const add = async (a: number) => {
  return a + 1;
};
interface Foo {
  x: number;
}
"""
GO = """func (s *Server) Start(ctx context.Context) error {
	return nil
}
type Server struct {
	a int
}
"""
RUST = """impl<T: Clone> Display for Matrix<T> {
    pub fn fmt(&self) -> String {
        let x = '{';
    }
}
pub(crate) async fn run(a: u8) -> Result<()> {
}
const MAX: usize = 3;
"""
JAVA = """public class D {
    @Override
    public List<String> names(int a) throws X {
        return new ArrayList<>();
    }
    void go() { }
}
"""
CPP = """#define LIMIT 3
static int count(const std::string& s) {
  if (s.empty()) return 0;
}
void Foo::bar(int x) const
{
  call(x);
}
int proto(int a);
"""
RUBY = """module A
  class B
    def self.go(x)
      if x
      end
    end
    def ok?
    end
  end
end
"""
LANGUAGES = {
    "a.ts": (TS, "Cart 1-6, Cart.total 2-5, add 7-9, Foo 10-12"),
    "a.go": (GO, "Server.Start 1-3, Server 4-6"),
    "a.rs": (RUST, "Matrix 1-5, Matrix.fmt 2-4, run 6-7, MAX 8-8"),
    "A.java": (JAVA, "D 1-7, D.names 3-5, D.go 6-6"),
    "a.cpp": (CPP, "LIMIT 1-1, count 2-4, Foo.bar 5-8"),
    "a.rb": (RUBY, "A 1-10, A.B 2-9, A.B.go 3-6, A.B.ok? 7-8"),
    "a.md": ("# Top\nx\n## Sub\ny\n## Two\n", "Top 1-5, Top.Sub 3-4, Top.Two 5-5"),
    "a.sql": ("create table if not exists t (\n  a int\n);\n", "t 1-3"),
    "a.sh": ("go() {\n  true\n}\nNAME=1\n", "go 1-3, NAME 4-4"),
    "a.toml": ("[tool.x]\na = 1\n[b]\n", "tool.x 1-2, b 3-3"),
    "a.bin": ("def f(): pass", ""),
}


@each_row("name", LANGUAGES)
def test_symbols_of_a_language(name: str) -> None:
    """With their qualified names and lines."""
    text, expected = LANGUAGES[name]
    found = [f"{one.name} {one.start + 1}-{one.end}" for one in find_symbols(name, text)]
    assert ", ".join(found) == expected
    assert knows_language(name) == bool(expected)


def test_a_name_is_found_if_it_is_one() -> None:
    """Qualified, or without its owner where no other has it."""
    symbols = find_symbols(
        "a.py", "class A:\n    def f(): 1\n    def g(): 1\nclass B:\n    def f(): 2"
    )
    assert [bool(find_symbol(symbols, name)) for name in ("A.f", "A::g", "g", "f", "h")] == [
        True, True, True, False, False
    ]  # fmt: skip


def test_a_long_file_of_one_line_is_read_quickly() -> None:
    """A pattern that tried every way would not come to an end, nor would a search for each end."""
    assert find_symbols("a.c", "void f(int a) {\n" * 20_000)
    for suffix in ("py", "ts", "rs", "java", "cpp", "sql", "md"):
        line = "static " * 40 + "a" * 5_000 + "<" * 5_000
        assert find_symbols(f"a.{suffix}", f"{line}\n" * 400) is not None


def test_what_formatters_change_is_not_in_the_hash() -> None:
    """White space, quotes, trailing commas, semicolons, and the symbol's own name."""
    first = hash_code(["def f(a):", "    return g('x', f)"], "f")
    assert first == hash_code(["def h(", "  a,", "):", '\treturn g("x",  h)', ""], "h")
    assert first != hash_code(["def f(a):", "    return g('y', f)"], "f")
